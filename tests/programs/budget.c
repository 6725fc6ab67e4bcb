/* Calls and commands of many kinds as fast as they can be made, with some that fail, and others from a signal
 * handler in between: for a recorder that adds calls up and times few commands.
 *
 *   budget [loops=3000] [threads=1] [end|kill|fork|exit|serial]: the child of exit makes no calls
 *
 * serial: threads one after the other. Writes how many commands succeeded:
 * COMMANDS even=N odd=N write=N/BYTES read=N/BYTES copy=N/BYTES fill=N/BYTES.
 */
#include "cl_util.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static const char *const source =
    "kernel void even(global int *p) { p[get_global_id(0)] += 2; }\n"
    "kernel void odd(global int *p) { p[get_global_id(0)] += 1; }\n";

enum { BYTES = 4096 };

static struct dev dev;
static cl_program program;
static long loops;
static unsigned long evens, odds, writes, reads, copies, fills;

static void count(unsigned long *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

static void on_alarm(int signal)
{
    (void)signal;
    cl_uint n = 0;
    CL(clGetPlatformIDs(0, NULL, &n));
}

static void *work(void *unused)
{
    (void)unused;
    cl_command_queue queue = MAKE(clCreateCommandQueue(dev.context, dev.device, 0, &err));
    cl_mem a = MAKE(clCreateBuffer(dev.context, CL_MEM_READ_WRITE, BYTES, NULL, &err));
    cl_mem b = MAKE(clCreateBuffer(dev.context, CL_MEM_READ_WRITE, BYTES, NULL, &err));
    cl_kernel even = MAKE(clCreateKernel(program, "even", &err));
    cl_kernel odd = MAKE(clCreateKernel(program, "odd", &err));
    char host[BYTES] = {0};
    const size_t items = 16;
    const int pattern = 7;
    for (long i = 0; i < loops; i++) {
        OK(clSetKernelArg(even, 0, sizeof a, &a));
        OK(clSetKernelArg(odd, 0, sizeof b, &b));
        if (i % 100 == 0) {
            CHECK(CL(clSetKernelArg(even, 99, sizeof a, &a)) != CL_SUCCESS);
            CHECK(CL(clEnqueueNDRangeKernel(queue, even, 4, NULL, &items, NULL, 0, NULL, NULL)) != CL_SUCCESS);
            CHECK(CL(clEnqueueReadBuffer(queue, a, CL_TRUE, BYTES, 1, host, 0, NULL, NULL)) != CL_SUCCESS);
        }
        OK(clEnqueueNDRangeKernel(queue, even, 1, NULL, &items, NULL, 0, NULL, NULL));
        count(&evens);
        if (i % 3 == 0) {
            OK(clEnqueueNDRangeKernel(queue, odd, 1, NULL, &items, NULL, 0, NULL, NULL));
            count(&odds);
        }
        if (i % 5 == 0) {
            OK(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, 100, host, 0, NULL, NULL));
            count(&writes);
            OK(clEnqueueCopyBuffer(queue, a, b, 0, 0, 200, 0, NULL, NULL));
            count(&copies);
            OK(clEnqueueFillBuffer(queue, b, &pattern, sizeof pattern, 0, 400, 0, NULL, NULL));
            count(&fills);
        }
        if (i % 2 == 0) {
            OK(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, 300, host, 0, NULL, NULL));
            count(&reads);
        } else {
            OK(clFinish(queue));
        }
    }
    OK(clReleaseKernel(even));
    OK(clReleaseKernel(odd));
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

static void print(long pid)
{
    printf("COMMANDS even=%lu odd=%lu write=%lu/%lu read=%lu/%lu copy=%lu/%lu fill=%lu/%lu\n", evens, odds, writes,
           writes * 100, reads, reads * 300, copies, copies * 200, fills, fills * 400);
    expect_print_pid(pid);
}

int main(int argc, char **argv)
{
    loops = arg_or(argc, argv, 1, 3000);
    long threads = arg_or(argc, argv, 2, 1);
    const char *end = argc > 3 ? argv[3] : "end";
    dev = dev_open();
    program = MAKE(clCreateProgramWithSource(dev.context, 1, (const char *[]){source}, NULL, &err));
    OK(clBuildProgram(program, 1, &dev.device, "", NULL, NULL));

    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval every = {{0, 700}, {0, 700}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    pthread_t *others = calloc(threads, sizeof *others);
    CHECK(others);
    const int serial = strcmp(end, "serial") == 0;
    for (long i = 1; i < threads; i++) {
        CHECK(pthread_create(&others[i], NULL, work, NULL) == 0);
        if (serial)
            CHECK(pthread_join(others[i], NULL) == 0);
    }
    work(NULL);
    for (long i = 1; i < threads && !serial; i++)
        CHECK(pthread_join(others[i], NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    free(others);

    if (strcmp(end, "fork") == 0) {
        /* The child has no calls of its parent's: not those that were added up, either. */
        print(getpid());
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            expect_reset();
            for (int i = 0; i < 1000; i++) {
                cl_uint n = 0;
                CL(clGetPlatformIDs(0, NULL, &n));
            }
            expect_print_pid(getpid());
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        return 0;
    }
    if (strcmp(end, "exit") == 0) {
        /* A child that does no more than end, with all that is to be done then. */
        fflush(stdout);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            exit(0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    print(0);
    if (strcmp(end, "kill") == 0)
        raise(SIGKILL);
    return 0;
}
