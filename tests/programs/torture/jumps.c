/* Handlers that leave by siglongjmp, out of the middle of whatever call they interrupted.
 *
 *   mode=jump   they leave
 *   mode=call   they make a call of their own, and return
 *   mode=both   they make a call of their own, and leave
 *   stack=alt   they run on a stack of their own
 *   opener=US   a thread that makes no call opens and closes a library every US µs
 *   threads=N signals=K period=US   each thread gets K signals of its own timer
 *
 * The number of signals bounds the run, whatever the machine's speed.
 */
#include "torture.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static int jumps_out, calls_too, on_other_stack;
static long signals, period_us;
static __thread sigjmp_buf out;
static __thread volatile sig_atomic_t armed;
static __thread volatile long seen;

static void on_signal(int unused)
{
    (void)unused;
    seen++;
    if (calls_too)
        api_call(seen);
    if (jumps_out && armed) {
        COUNT(board->jumps, 1);
        siglongjmp(out, 1);
    }
}

static timer_t start_timer(void)
{
    timer_t timer;
    struct sigevent how = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    how.sigev_notify_thread_id = syscall(SYS_gettid);
    CHECK(timer_create(CLOCK_MONOTONIC, &how, &timer) == 0);
    struct itimerspec when = {{0, period_us * 1000}, {0, period_us * 1000}};
    CHECK(timer_settime(timer, 0, &when, NULL) == 0);
    return timer;
}

static void *work(void *unused)
{
    static __thread char other[64 << 10];
    if (on_other_stack) {
        stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
        CHECK(sigaltstack(&stack, NULL) == 0);
    }
    timer_t timer = start_timer();
    volatile unsigned i = 0;
    while (seen < signals) {
        if (sigsetjmp(out, 1) == 0) {
            armed = 1;
            for (int k = 0; k < 64; k++)
                api_call(i++);
        }
        armed = 0;
    }
    CHECK(timer_delete(timer) == 0);
    /* What the thread does afterwards is recorded, too. */
    for (int k = 0; k < 1000; k++)
        api_call(k);
    return unused;
}

static volatile int opening;

/* A library may be on its way during all of the others' calls. */
static void *open_and_close(void *pause)
{
    while (opening) {
        void *library = dlopen("libanl.so.1", RTLD_NOW);
        if (library)
            CHECK(dlclose(library) == 0);
        usleep(*(const long *)pause);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = number(argc, argv, "threads", 4);
    const char *mode = word(argc, argv, "mode", "jump");
    jumps_out = strcmp(mode, "call") != 0;
    calls_too = strcmp(mode, "jump") != 0;
    on_other_stack = strcmp(word(argc, argv, "stack", ""), "alt") == 0;
    signals = number(argc, argv, "signals", 500);
    period_us = number(argc, argv, "period", 50);
    board_make();
    api_open();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (on_other_stack)
        action.sa_flags |= SA_ONSTACK;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    long pause = number(argc, argv, "opener", 0);
    pthread_t t[64], opener;
    CHECK(threads <= 64);
    opening = pause > 0;
    if (opening)
        CHECK(pthread_create(&opener, NULL, open_and_close, &pause) == 0);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, work, NULL) == 0);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    if (opening) {
        opening = 0;
        CHECK(pthread_join(opener, NULL) == 0);
    }
    put("done\n", 5);
    board_print();
    return 7;
}
