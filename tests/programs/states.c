/* A program whose device is idle because of what happens to its threads.
 *
 *   states lock       thread "holder" builds a program and holds a lock that main wants before it enqueues
 *   states chain      the same, and main wants a lock of "middle", which waits for that of "holder"
 *   states signalled  the same as lock, while "nagger" interrupts main's wait by signals
 *   states timed      the same as lock, with a time by which main would give up
 *   states preempted  main computes between two kernels, on CPU 0 alone
 *   states asleep     main sleeps between two kernels
 *   states hog        a competitor: takes CPU 0 until its stdin ends; writes "ready" before
 */
#include "cl_util.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_t waiter;
static atomic_int over;
static pthread_barrier_t held;
static struct dev d;

static void pin(void)
{
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    CHECK(sched_setaffinity(0, sizeof first, &first) == 0);
}

static int hog(void)
{
    pin();
    prctl(PR_SET_NAME, "hog");
    CHECK(write(1, "ready\n", 6) == 6);
    struct pollfd end = {0, POLLIN, 0};
    while (poll(&end, 1, 0) == 0)
        for (volatile int i = 0; i < 1000000; i++)
            ;
    return 0;
}

static cl_program fresh(int n)
{
    char source[256];
    /* Unlike all others, so that no cache has it. */
    snprintf(source, sizeof source, "kernel void k%d_%ld(global int *a) { a[0] += %d; }", n, (long)getpid(), n);
    return build(&d, source, "");
}

static void *hold(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "holder");
    CHECK(pthread_mutex_lock(&lock) == 0);
    pthread_barrier_wait(&held);
    for (int i = 1; i < 4; i++)
        OK(clReleaseProgram(fresh(i)));
    CHECK(pthread_mutex_unlock(&lock) == 0);
    return NULL;
}

/* Has the first lock, and wants the other one. */
static void *stand_between(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "middle");
    CHECK(pthread_mutex_lock(&outer) == 0);
    pthread_barrier_wait(&held);
    CHECK(pthread_mutex_lock(&lock) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0);
    CHECK(pthread_mutex_unlock(&outer) == 0);
    return NULL;
}

static void nothing(int number)
{
    (void)number;
}

/* Interrupts whoever waits, again and again. */
static void *nag(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "nagger");
    while (!over) {
        sleep_ms(10);
        CHECK(pthread_kill(waiter, SIGUSR1) == 0);
    }
    return NULL;
}

/* Main waits for a lock, and another thread that has it for another one. */
static void chain(void)
{
    pthread_t holder, middle;
    pthread_barrier_init(&held, NULL, 2);
    CHECK(pthread_create(&holder, NULL, hold, NULL) == 0);
    pthread_barrier_wait(&held);
    CHECK(pthread_create(&middle, NULL, stand_between, NULL) == 0);
    pthread_barrier_wait(&held);
    CHECK(pthread_mutex_lock(&outer) == 0);
    CHECK(pthread_mutex_unlock(&outer) == 0);
    CHECK(pthread_join(middle, NULL) == 0);
    CHECK(pthread_join(holder, NULL) == 0);
}

/* Main waits for a lock, in one of several ways. */
static void wait_for_lock(const char *what)
{
    pthread_t holder, nagger;
    int is_nagged = strcmp(what, "signalled") == 0;
    pthread_barrier_init(&held, NULL, 2);
    CHECK(pthread_create(&holder, NULL, hold, NULL) == 0);
    pthread_barrier_wait(&held);
    waiter = pthread_self();
    if (is_nagged) {
        CHECK(signal(SIGUSR1, nothing) != SIG_ERR);
        CHECK(pthread_create(&nagger, NULL, nag, NULL) == 0);
    }
    if (strcmp(what, "timed") == 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 300;
        CHECK(pthread_mutex_timedlock(&lock, &until) == 0);
    } else {
        CHECK(pthread_mutex_lock(&lock) == 0);
    }
    CHECK(pthread_mutex_unlock(&lock) == 0);
    over = 1;
    if (is_nagged)
        CHECK(pthread_join(nagger, NULL) == 0);
    CHECK(pthread_join(holder, NULL) == 0);
}

static void compute(double us)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1e6 + (now.tv_nsec - begin.tv_nsec) * 1e-3 < us);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "hog") == 0)
        return hog();
    d = dev_open();
    cl_program program = fresh(0);
    char name[64];
    snprintf(name, sizeof name, "k0_%ld", (long)getpid());
    cl_kernel kernel = MAKE(clCreateKernel(program, name, &err));
    cl_command_queue queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    cl_mem mem = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 4, NULL, &err));
    OK(clSetKernelArg(kernel, 0, sizeof mem, &mem));
    size_t one = 1;
    /* The first one is compiled when it is enqueued. */
    for (int i = 0; i < 2; i++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clFinish(queue));
    }
    if (strcmp(what, "lock") == 0 || strcmp(what, "timed") == 0 || strcmp(what, "signalled") == 0) {
        wait_for_lock(what);
    } else if (strcmp(what, "chain") == 0) {
        chain();
    } else if (strcmp(what, "preempted") == 0) {
        pin();
        compute(100e3);
    } else if (strcmp(what, "asleep") == 0) {
        sleep_ms(50);
    } else {
        fail(__FILE__, __LINE__, what, 0);
    }
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clReleaseMemObject(mem));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(queue));
    dev_close(&d);
    expect_print();
    return 0;
}
