/* What the test programs share: counted calls, checks, and opening a device.
 *
 * A program writes each OpenCL call as CL(clFoo(...)). The macro counts the call
 * under the name it finds in its own text, and expect_print() writes
 *
 *     EXPECT clFoo=3 clBar=1
 *
 * as the program's last line, so that a test can compare the trace with what the
 * program says that it did. A process that is one of several writes pid=N first;
 * several lines with the same pid (before and after exec) add up.
 *
 * Counting is wait-free and safe in signal handlers, constructors and threads: each
 * place in the source has its own static counter, and these form a list.
 */
#ifndef HETRACE_TEST_CL_UTIL_H
#define HETRACE_TEST_CL_UTIL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- counting ---------------------------------------------------------------- */

struct site {
    const char *text; /* "clFinish(queue)": the name ends at the parenthesis */
    unsigned long hits;
    int listed;
    struct site *next;
};

static struct site *all_sites;

static inline void site_hits(struct site *s, unsigned long n)
{
    __atomic_fetch_add(&s->hits, n, __ATOMIC_RELAXED);
    if (__atomic_load_n(&s->listed, __ATOMIC_RELAXED))
        return;
    if (__atomic_exchange_n(&s->listed, 1, __ATOMIC_ACQ_REL))
        return;
    struct site *head = __atomic_load_n(&all_sites, __ATOMIC_ACQUIRE);
    do
        s->next = head;
    while (!__atomic_compare_exchange_n(&all_sites, &head, s, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
}

/* A call by its own name. */
#define CL(call) CL_AS(#call, call)

/* A call through a pointer: the name is given. Benchmarks count nothing. */
#ifdef CL_NO_COUNT
#define CL_AS(name, call) (call)
#else
#define CL_AS(name, call)                    \
    __extension__({                          \
        static struct site site_ = {name, 0}; \
        site_hits(&site_, 1);                \
        call;                                \
    })
#endif

/* n calls at once, for loops in which counting would cost more than the call. */
#define CL_COUNT(name, n)                    \
    do {                                     \
        static struct site site_ = {name, 0}; \
        site_hits(&site_, (n));              \
    } while (0)

static inline size_t site_name_length(const struct site *s)
{
    return strcspn(s->text, "( ");
}

static inline int site_order(const void *a, const void *b)
{
    const struct site *x = *(struct site *const *)a, *y = *(struct site *const *)b;
    size_t n = site_name_length(x), m = site_name_length(y);
    int c = strncmp(x->text, y->text, n < m ? n : m);
    return c ? c : (n > m) - (n < m);
}

/* The EXPECT line. pid 0 leaves the process out. */
static inline void expect_print_pid(long pid)
{
    struct site *list[1024];
    size_t n = 0;
    for (struct site *s = __atomic_load_n(&all_sites, __ATOMIC_ACQUIRE); s && n < 1024; s = s->next)
        list[n++] = s;
    qsort(list, n, sizeof *list, site_order);

    /* One write, so that the lines of several processes never mix. */
    char line[16384];
    int at = snprintf(line, sizeof line, "EXPECT");
    if (pid)
        at += snprintf(line + at, sizeof line - at, " pid=%ld", pid);
    for (size_t i = 0; i < n;) {
        unsigned long sum = 0;
        size_t j = i;
        for (; j < n && site_order(&list[i], &list[j]) == 0; j++)
            sum += list[j]->hits;
        if (sum)
            at += snprintf(line + at, sizeof line - at, " %.*s=%lu",
                           (int)site_name_length(list[i]), list[i]->text, sum);
        i = j;
    }
    line[at++] = '\n';
    fflush(stdout);
    if (write(STDOUT_FILENO, line, at) != at)
        _exit(99);
}

static inline void expect_print(void)
{
    expect_print_pid(0);
}

/* A forked child starts its own count. */
static inline void expect_reset(void)
{
    for (struct site *s = all_sites; s; s = s->next)
        s->hits = 0;
}

/* ---- checks ------------------------------------------------------------------ */

static inline void fail(const char *file, int line, const char *what, long code)
{
    fprintf(stderr, "%s:%d: %s: %ld\n", file, line, what, code);
    fflush(stdout);
    /* Not exit(): handlers of the program under test may be what is broken. */
    _exit(98);
}

#define CHECK(condition)                                  \
    do {                                                  \
        if (!(condition))                                 \
            fail(__FILE__, __LINE__, #condition, errno);  \
    } while (0)

/* A counted call that must answer CL_SUCCESS. */
#define OK(call)                                          \
    do {                                                  \
        cl_int code_ = CL(call);                          \
        if (code_ != CL_SUCCESS)                          \
            fail(__FILE__, __LINE__, #call, code_);       \
    } while (0)

/* A counted creation that ends in an error code pointer named &err. */
#define MAKE(call)                                        \
    __extension__({                                       \
        cl_int err = -9999;                               \
        __auto_type made_ = CL(call);                     \
        if (err != CL_SUCCESS || !made_)                  \
            fail(__FILE__, __LINE__, #call, err);         \
        made_;                                            \
    })

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static inline void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

static inline long arg_or(int argc, char **argv, int i, long otherwise)
{
    return argc > i ? strtol(argv[i], NULL, 10) : otherwise;
}

/* ---- opening a device -------------------------------------------------------- */

struct dev {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
};

/* dlopened.c has no loader at link time, so that it can't have these. */
#ifndef NO_LINKED_OPENCL

/* The first device of the first platform. */
static inline struct dev dev_open(void)
{
    struct dev d;
    OK(clGetPlatformIDs(1, &d.platform, NULL));
    OK(clGetDeviceIDs(d.platform, CL_DEVICE_TYPE_ALL, 1, &d.device, NULL));
    cl_context_properties how[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)d.platform, 0};
    d.context = MAKE(clCreateContext(how, 1, &d.device, NULL, NULL, &err));
    return d;
}

static inline void dev_close(struct dev *d)
{
    OK(clReleaseContext(d->context));
}

/* Oclgrind 21.10 differs in two ways that hang a program which does nothing wrong.
 * Its clFlush works as clFinish, on the calling thread, and spins for ever when a user
 * event is still open. And its ICD fills its dispatch table with its functions
 * newer than OpenCL 1.2 through the dynamic symbol table, where the loader's functions
 * of the same name come first: in a program linked to the loader, such a call jumps in
 * circles. Programs that are to run on Oclgrind leave these out. */
static inline int is_oclgrind(cl_platform_id platform)
{
    char name[64] = "";
    OK(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL));
    return strcmp(name, "Oclgrind") == 0;
}

static inline cl_program build(const struct dev *d, const char *source, const char *options)
{
    cl_program p = MAKE(clCreateProgramWithSource(d->context, 1, &source, NULL, &err));
    OK(clBuildProgram(p, 1, &d->device, options, NULL, NULL));
    return p;
}

#endif
#endif
