/* A program whose device is idle because of what happens to its threads.
 *
 *   states lock       thread "holder" builds a program and holds a lock that main wants before it enqueues
 *   states preempted  main computes between two kernels, on CPU 0 alone
 *   states asleep     main sleeps between two kernels
 *   states hog        a competitor: takes CPU 0 until its stdin ends; writes "ready" before
 */
#include "cl_util.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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
    if (strcmp(what, "lock") == 0) {
        pthread_t holder;
        pthread_barrier_init(&held, NULL, 2);
        CHECK(pthread_create(&holder, NULL, hold, NULL) == 0);
        pthread_barrier_wait(&held);
        CHECK(pthread_mutex_lock(&lock) == 0);
        CHECK(pthread_mutex_unlock(&lock) == 0);
        CHECK(pthread_join(holder, NULL) == 0);
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
