/* A program that fills a trace to read: threads that set arguments, ask, send, launch,
 * receive and wait, each on a queue of its own.
 *
 *   analyze_load [iterations=1000] [threads=4]
 *
 * An iteration is 24 calls and 3 commands: a write, a kernel and a read.
 */
#include "cl_util.h"
#include <pthread.h>

enum { VALUES = 16, SETS = 13 };

static struct dev d;
static cl_program program;
static long iterations;

static void iterate(cl_command_queue queue, cl_kernel kernel, cl_mem memory, int *values, int i)
{
    size_t global = VALUES, bytes;
    cl_event sent, done;
    cl_uint number;
    for (int a = 1; a <= SETS; a++) {
        int v = i % 17 + a;
        OK(clSetKernelArg(kernel, a, sizeof v, &v));
    }
    OK(clSetKernelArg(kernel, 0, sizeof memory, &memory));
    OK(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL));
    OK(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof number, &number, NULL));
    OK(clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, sizeof *values * VALUES, values, 0, NULL,
                            &sent));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 1, &sent, &done));
    OK(clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, sizeof *values * VALUES, values, 1, &done,
                           NULL));
    OK(clFlush(queue));
    OK(clFinish(queue));
    OK(clReleaseEvent(sent));
    OK(clReleaseEvent(done));
    OK(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof number, &number, NULL));
}

static void *work(void *nothing)
{
    int values[VALUES] = {0};
    cl_command_queue queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    cl_kernel kernel = MAKE(clCreateKernel(program, "add", &err));
    cl_mem memory = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, sizeof values, NULL, &err));
    for (long i = 0; i < iterations; i++)
        iterate(queue, kernel, memory, values, (int)(i % 1000));
    OK(clReleaseMemObject(memory));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    return nothing;
}

int main(int argc, char **argv)
{
    iterations = arg_or(argc, argv, 1, 1000);
    int threads = arg_or(argc, argv, 2, 4);
    CHECK(iterations > 0 && threads > 0);
    d = dev_open();
    program = build(&d,
                    "__kernel void add(__global int *v, int a, int b, int c, int d, int e, int f,\n"
                    "                  int g, int h, int i, int j, int k, int l, int m) {\n"
                    "  v[get_global_id(0)] += a + b + c + d + e + f + g + h + i + j + k + l + m;\n"
                    "}\n",
                    NULL);
    pthread_t *all = calloc(threads, sizeof *all);
    CHECK(all);
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&all[i], NULL, work, NULL) == 0);
    for (int i = 0; i < threads; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    free(all);
    OK(clReleaseProgram(program));
    dev_close(&d);
    return 0;
}
