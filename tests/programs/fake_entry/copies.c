/* Several runtimes in one process.
 *
 *   copies FOLDER plugins|dlsym|mixed|threads|reopened|coroutine|handlers
 */
#include "runtime.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static const char *folder;

static void *load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    return library;
}

static int (*plugin(const char *name))(void)
{
    int (*use)(void) = (int (*)(void))dlsym(load(name), "use");
    CHECK(use);
    return use;
}

/* As much as SIGSTKSZ, behind pages that nobody may touch. */
enum { LITTLE = 8192, GUARD = 65536 };

static ucontext_t around, inside;
static int (*work_inside)(void);
static int result;

static void begin_inside(void)
{
    result = work_inside();
}

/* Calls on a stack of its own. */
static int on_little_stack(int (*what)(void))
{
    char *stack = mmap(NULL, GUARD + LITTLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack + GUARD, LITTLE, PROT_READ | PROT_WRITE) == 0);
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = stack + GUARD;
    inside.uc_stack.ss_size = LITTLE;
    inside.uc_link = &around;
    work_inside = what;
    makecontext(&inside, begin_inside, 0);
    CHECK(swapcontext(&around, &inside) == 0 && munmap(stack, GUARD + LITTLE) == 0);
    return result;
}

static int stop, rounds;

static void *work(void *use)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        CHECK(((int (*)(void))use)() == 0);
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static struct runtime by_handlers;
static int handled;

/* By address, while the thread makes calls by name. */
static void on_alarm(int number)
{
    (void)number;
    void *address = NULL;
    if (by_handlers.allocate(&address, 9) || (uintptr_t)address != 13000009 || by_handlers.release(address))
        _exit(3);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* Until the threads have called that many times more. */
static void wait_for(int more)
{
    int until = __atomic_load_n(&rounds, __ATOMIC_RELAXED) + more;
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < until)
        sched_yield();
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    folder = argv[1];
    const char *mode = argv[2];
    if (strcmp(mode, "plugins") == 0) {
        int (*old)(void) = plugin("plugin12.so");
        CHECK(old() == 0 && old() == 0);
        int (*new)(void) = plugin("plugin13.so");
        for (int i = 0; i < 20; i++)
            CHECK(new() == 0 && old() == 0);
    } else if (strcmp(mode, "dlsym") == 0) {
        struct runtime old = found(load("libcudart.so.12"));
        CHECK(uses(&old, 12));
        struct runtime new = found(load("libcudart.so.13"));
        for (int i = 0; i < 20; i++)
            CHECK(uses(&new, 13) && uses(&old, 12));
    } else if (strcmp(mode, "mixed") == 0) {
        struct runtime old = found(load("libcudart.so.12"));
        CHECK(uses(&old, 12));
        int (*new)(void) = plugin("plugin13.so");
        struct runtime newer = found(load("libcudart.so.13"));
        int (*older)(void) = plugin("plugin12.so");
        for (int i = 0; i < 20; i++)
            CHECK(new() == 0 && uses(&old, 12) && older() == 0 && uses(&newer, 13));
    } else if (strcmp(mode, "reopened") == 0) {
        /* The second plug-in comes where the first one was, which called until it was gone. */
        void *first = load("plugin12.so");
        int (*use)(void) = (int (*)(void))dlsym(first, "use");
        struct runtime newer = found(load("libcudart.so.13"));
        CHECK(use && use() == 0 && uses(&newer, 13) && dlclose(first) == 0);
        int (*next)(void) = plugin("plugin13.so");
        CHECK(next() == 0 && next() == 0);
    } else if (strcmp(mode, "coroutine") == 0) {
        int (*old)(void) = (int (*)(void))dlsym(load("plugin12.so"), "use_little");
        int (*new)(void) = (int (*)(void))dlsym(load("plugin13.so"), "use_little");
        for (int i = 0; i < 20; i++)
            CHECK(on_little_stack(old) == 0 && on_little_stack(new) == 0);
    } else if (strcmp(mode, "handlers") == 0) {
        int (*old)(void) = (int (*)(void))dlsym(load("plugin12.so"), "use_little");
        by_handlers = found(load("libcudart.so.13"));
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, (void *)old) == 0);
        sigset_t alarms;
        sigemptyset(&alarms);
        sigaddset(&alarms, SIGALRM);
        CHECK(pthread_sigmask(SIG_BLOCK, &alarms, NULL) == 0);
        struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
        struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
        CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
        while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < 2000)
            usleep(1000);
        CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
    } else {
        pthread_t threads[4];
        int (*old)(void) = plugin("plugin12.so");
        for (int i = 0; i < 4; i++)
            CHECK(pthread_create(&threads[i], NULL, work, (void *)old) == 0);
        wait_for(100);
        int (*new)(void) = plugin("plugin13.so");
        CHECK(new() == 0);
        wait_for(100);
        struct runtime newer = found(load("libcudart.so.13"));
        for (int i = 0; i < 200; i++)
            CHECK(new() == 0 && uses(&newer, 13));
        wait_for(100);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    return 0;
}
