/* Threads that have recorded something and stay, so that memory can be looked at.
 *
 *   hold_threads [threads=100] [calls=1000] [commands=0]
 *
 * Each thread makes its calls, and enqueues and finishes its commands. Then the program
 * prints `ready PID` and stays until its standard input ends.
 */
#include "cl_util.h"
#include <pthread.h>

static pthread_barrier_t all_done, may_end;
static struct dev d;
static cl_program program;
static int calls, commands;

static void enqueue_some(void)
{
    size_t one = 1;
    cl_command_queue queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    cl_kernel kernel = MAKE(clCreateKernel(program, "nothing", &err));
    for (int i = 0; i < commands; i++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
        if (i % 100 == 99)
            OK(clFinish(queue));
    }
    OK(clFinish(queue));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static void *work(void *nothing)
{
    for (int i = 0; i < calls; i++) {
        cl_uint n;
        OK(clGetPlatformIDs(0, NULL, &n));
    }
    if (commands)
        enqueue_some();
    pthread_barrier_wait(&all_done);
    pthread_barrier_wait(&may_end);
    return nothing;
}

int main(int argc, char **argv)
{
    int threads = arg_or(argc, argv, 1, 100);
    calls = arg_or(argc, argv, 2, 1000);
    commands = arg_or(argc, argv, 3, 0);
    CHECK(threads > 0 && calls >= 0 && commands >= 0);
    d = dev_open();
    program = build(&d, "__kernel void nothing(void) {}\n", NULL);
    pthread_barrier_init(&all_done, NULL, threads + 1);
    pthread_barrier_init(&may_end, NULL, threads + 1);

    pthread_t *all = calloc(threads, sizeof *all);
    CHECK(all);
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&all[i], NULL, work, NULL) == 0);
    pthread_barrier_wait(&all_done);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (getchar() != EOF)
        ;
    pthread_barrier_wait(&may_end);
    for (int i = 0; i < threads; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    free(all);
    OK(clReleaseProgram(program));
    dev_close(&d);
    return 0;
}
