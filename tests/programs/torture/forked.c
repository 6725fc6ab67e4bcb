/* Children whose parent was in the middle of something.
 *
 *   mode=neighbour  a thread forks; in the child another one, whose stack is beside its own,
 *                   is the first to call, and then both do at once
 *   mode=cancelled  in a child, the thread that calls first has been asked to end: it does so
 *                   wherever a thread may, and another goes on
 *   mode=handler    a handler interrupts calls, forks, and returns in parent and child
 *   calls=K children=N
 */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static pthread_barrier_t both;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_attr_t small_stack;
static long calls;

/* All children ended as they should. */
static void await_all(void)
{
    int status;
    while (wait(&status) > 0)
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *work(void *unused)
{
    api_call(0);
    pthread_barrier_wait(&both);
    for (long i = 0; i < calls; i++)
        api_call(i);
    return unused;
}

/* ---- neighbour ------------------------------------------------------------------ */

static void *place(void *unused)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return unused;
}

static void *forker(void *neighbour)
{
    /* The first call of the process: main makes none. */
    api_call(0);
    CHECK(pthread_join(*(pthread_t *)neighbour, NULL) == 0);
    if (fork() == 0) {
        pthread_t t;
        slot_take();
        pthread_barrier_init(&both, NULL, 2);
        /* It gets the stack of the one that has ended. */
        CHECK(pthread_create(&t, &small_stack, work, NULL) == 0);
        pthread_barrier_wait(&both);
        for (long i = 0; i < calls; i++)
            api_call(i);
        CHECK(pthread_join(t, NULL) == 0);
        _exit(0);
    }
    await_all();
    return NULL;
}

static void neighbour(void)
{
    pthread_t one, t;
    pthread_mutex_lock(&gate);
    CHECK(pthread_create(&one, &small_stack, place, NULL) == 0);
    CHECK(pthread_create(&t, &small_stack, forker, &one) == 0);
    pthread_mutex_unlock(&gate);
    CHECK(pthread_join(t, NULL) == 0);
}

/* ---- cancelled ------------------------------------------------------------------ */

static void *asked_to_end(void *unused)
{
    CHECK(pthread_cancel(pthread_self()) == 0);
    api_call(1);
    pthread_testcancel();
    return unused;
}

static void cancelled(void)
{
    api_open();
    if (fork() == 0) {
        pthread_t t;
        slot_take();
        CHECK(pthread_create(&t, &small_stack, asked_to_end, NULL) == 0);
        CHECK(pthread_join(t, NULL) == 0);
        for (long i = 0; i < calls; i++)
            api_call(i);
        _exit(0);
    }
    await_all();
}

/* ---- handler -------------------------------------------------------------------- */

static volatile sig_atomic_t children_left, is_child;

static void on_alarm(int unused)
{
    int before = errno;
    (void)unused;
    if (children_left > 0) {
        children_left--;
        if (fork() == 0)
            is_child = 1;
    }
    errno = before;
}

/* Nothing that takes a lock: the child could find it taken. */
static void cheap_call(void)
{
    cl_uint number;
    CALL(clGetDeviceInfo(NULL, CL_DEVICE_VENDOR_ID, sizeof number, &number, NULL));
}

static void handler(long children)
{
    struct itimerval every = {{0, 1500}, {0, 1500}}, never = {{0, 0}, {0, 0}};
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    /* Threads of the implementation are not to fork. */
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    api_open();
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    children_left = children;
    CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    while (children_left > 0 && !is_child)
        cheap_call();
    if (is_child) {
        slot_take();
        for (long i = 0; i < calls; i++)
            cheap_call();
        _exit(0);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    await_all();
}

int main(int argc, char **argv)
{
    const char *mode = word(argc, argv, "mode", "neighbour");
    calls = number(argc, argv, "calls", 100);
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 64 << 10);
    board_make();
    if (strcmp(mode, "neighbour") == 0)
        neighbour();
    else if (strcmp(mode, "cancelled") == 0)
        cancelled();
    else
        handler(number(argc, argv, "children", 100));
    board_print();
    return 7;
}
