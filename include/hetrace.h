/*
 * hetrace.h: what a program can say of itself to hetrace.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     hetrace_push("step");                       a range of this thread; they nest
 *     hetrace_pop();
 *     hetrace_range r = hetrace_start("request"); a range that any thread may end
 *     hetrace_end(r);
 *     hetrace_mark("loss", 17);                   a moment, with a number
 *     hetrace_name_thread("loader");              a name for this thread
 *     hetrace_capture_start();                    with `hetrace run --on-calls`: record from here
 *     hetrace_capture_stop();                     to here
 *     hetrace_snapshot();                         ask for what was recorded last, where that is kept
 *     if (hetrace_is_traced()) ...                to make texts only when somebody reads them
 *
 * Copy this file into your program or name its folder to the compiler. There is nothing to link: in a program
 * that `hetrace run` started, the first call loads hetrace's library; in any other, each call is one load and
 * a branch that is not taken. C99 and C++, GCC and Clang, Linux. Define HETRACE_DISABLE to leave nothing
 * of it in the program.
 *
 * Texts are UTF-8 that ends with a NUL; NULL is an empty one. They are copied, long ones in part. Any thread
 * may call anything at any time, also in libraries that are opened later and after fork(); only the first call
 * of a program or library loads something, so it should not be made in a signal handler. errno stays as it is.
 * A pop without a push, or an end of what is no range, is counted in the report and does no harm.
 *
 * Static programs are not traced, nor are those with more rights than their user (setuid).
 */
#ifndef HETRACE_H
#define HETRACE_H

#include <stdint.h>

/* A range that was started. 0 is none: what hetrace_start returns when nothing is traced. */
typedef uint64_t hetrace_range;

#if defined(HETRACE_DISABLE) || !defined(__linux__) || !(defined(__GNUC__) || defined(__clang__))
#define HETRACE_ABSENT_ 1
#endif

#ifndef HETRACE_ABSENT_
#include <errno.h>
#include <stddef.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef HETRACE_ABSENT_

static inline int hetrace_is_traced(void) { return 0; }
static inline void hetrace_push(const char *name) { (void)name; }
static inline void hetrace_pop(void) {}
static inline hetrace_range hetrace_start(const char *name) { (void)name; return 0; }
static inline void hetrace_end(hetrace_range range) { (void)range; }
static inline void hetrace_mark(const char *name, uint64_t value) { (void)name; (void)value; }
static inline void hetrace_name_thread(const char *name) { (void)name; }
static inline void hetrace_capture_start(void) {}
static inline void hetrace_capture_stop(void) {}
static inline void hetrace_snapshot(void) {}

#else

/* What hetrace's library has. New functions come at the end. */
struct hetrace_functions_ {
    size_t size;
    void (*push)(const char *);
    void (*pop)(void);
    hetrace_range (*start)(const char *);
    void (*end)(hetrace_range);
    void (*mark)(const char *, uint64_t);
    void (*name_thread)(const char *);
    void (*capture_start)(void);
    void (*capture_stop)(void);
    void (*snapshot)(void);
};

/* The C library's, under names of our own, so that no declaration of others is in the way. Weak: a static program
 * that does without them goes on doing without them. `dlopen` is looked up: to name it makes linkers warn of static
 * programs. */
extern char *hetrace_getenv_(const char *) __asm__("secure_getenv") __attribute__((weak));
extern unsigned long hetrace_getauxval_(unsigned long) __asm__("getauxval") __attribute__((weak));
extern void *hetrace_dlsym_(void *, const char *) __asm__("dlsym") __attribute__((weak));

/* 0: not known yet. 1: not traced. Else the functions. Each copy of this file asks for itself. */
static const struct hetrace_functions_ *hetrace_known_;

/* In words that strict C++ compilers do not warn of. */
#ifdef __cplusplus
#define HETRACE_OFF_ (reinterpret_cast<const struct hetrace_functions_ *>(1))
#else
#define HETRACE_OFF_ ((const struct hetrace_functions_ *)1)
#endif
#if defined(__cplusplus) && __cplusplus >= 201103L
#define HETRACE_NULL_ nullptr
#else
#define HETRACE_NULL_ NULL
#endif

/* Finds out whether this process is traced. Threads that do so at once find the same. */
static const struct hetrace_functions_ *hetrace_find_(void) __attribute__((cold, noinline, unused));
static const struct hetrace_functions_ *hetrace_find_(void) {
    typedef const struct hetrace_functions_ *(*ask_t)(void);
    /* ISO C knows no way from an address of data to one of a function. */
    union { void *address; void *(*open)(const char *, int); } loader;
    union { void *address; ask_t ask; } marks;
    const struct hetrace_functions_ *found = HETRACE_OFF_;
    const char *path;
    void *library;
    int saved = errno;
    /* Without a dynamic loader (AT_BASE, 7) there is nobody to load a library into this program. */
    if (hetrace_getenv_ && hetrace_getauxval_ && hetrace_dlsym_ && hetrace_getauxval_(7) != 0 &&
        (path = hetrace_getenv_("HETRACE_MARKS")) != HETRACE_NULL_ && path[0] == '/' &&
        (loader.address = hetrace_dlsym_(HETRACE_NULL_ /* RTLD_DEFAULT */, "dlopen")) != HETRACE_NULL_ &&
        (library = loader.open(path, 2 /* RTLD_NOW */)) != HETRACE_NULL_ &&
        (marks.address = hetrace_dlsym_(library, "hetrace_marks")) != HETRACE_NULL_) {
        const struct hetrace_functions_ *functions = marks.ask();
        /* A library that is older than this file lacks functions. */
        if (functions && functions->size >= sizeof *functions)
            found = functions;
    }
    __atomic_store_n(&hetrace_known_, found, __ATOMIC_RELEASE);
    errno = saved;
    return found;
}

/* The functions if this process is traced; else NULL. */
static inline const struct hetrace_functions_ *hetrace_on_(void) {
    const struct hetrace_functions_ *known = __atomic_load_n(&hetrace_known_, __ATOMIC_ACQUIRE);
    if (__builtin_expect(known == HETRACE_OFF_, 1))
        return HETRACE_NULL_;
    if (!known)
        known = hetrace_find_();
    return known == HETRACE_OFF_ ? HETRACE_NULL_ : known;
}

/* Whether this process is traced. */
static inline int hetrace_is_traced(void) {
    return hetrace_on_() != HETRACE_NULL_;
}

/* Begins a range of this thread. */
static inline void hetrace_push(const char *name) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on) on->push(name);
}

/* Ends the range that this thread has begun last. */
static inline void hetrace_pop(void) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on) on->pop();
}

/* Begins a range that any thread of the process may end. */
static inline hetrace_range hetrace_start(const char *name) {
    const struct hetrace_functions_ *on = hetrace_on_();
    return on ? on->start(name) : 0;
}

/* Ends such a range. 0 is passed over. */
static inline void hetrace_end(hetrace_range range) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on && range) on->end(range);
}

/* Marks a moment. */
static inline void hetrace_mark(const char *name, uint64_t value) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on) on->mark(name, value);
}

/* Names this thread in the trace; the system's name of it stays. */
static inline void hetrace_name_thread(const char *name) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on) on->name_thread(name);
}

/* In a run with `--on-calls`: begins to record, in all processes of the run. */
static inline void hetrace_capture_start(void) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on) on->capture_start();
}

/* In a run with `--on-calls`: stops recording. Ranges are marked all the same. */
static inline void hetrace_capture_stop(void) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on) on->capture_stop();
}

/* Asks for a snapshot of what was recorded last, and does not wait for it. Without a session that keeps that, nothing
 * happens. */
static inline void hetrace_snapshot(void) {
    const struct hetrace_functions_ *on = hetrace_on_();
    if (on) on->snapshot();
}

#endif /* HETRACE_ABSENT_ */

#ifdef __cplusplus
}
#endif
#endif /* HETRACE_H */
