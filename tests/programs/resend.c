/* Sends bytes to a buffer that kernels only read, ten times.
 *
 *   resend MODE
 *
 * same:     the same bytes, from two places in turn, and time enough to change them
 * changed:  one int is another each time, in next to no time
 * written:  the same bytes, and the host writes others in between
 * null:     once from NULL, which the platform refuses, and then from memory
 * long:     once more than 64 MiB
 * bad:      once from memory that cannot be read
 */
#include "cl_util.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ITEMS = 1 << 18, ROUNDS = 10, LONG = 65 << 20 };

static const char *source = "__kernel void sum(__constant int *in, __global int *out)\n"
                            "{ out[get_global_id(0)] += in[get_global_id(0)]; }\n";
static int values[2][ITEMS];

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *mode = argv[1];
    struct dev d = dev_open();
    cl_program program = build(&d, source, NULL);
    cl_command_queue queue = MAKE(clCreateCommandQueueWithProperties(d.context, d.device, NULL, &err));
    cl_kernel kernel = MAKE(clCreateKernel(program, "sum", &err));
    int is_long = !strcmp(mode, "long");
    size_t size = is_long ? LONG : sizeof values[0], items = 64;
    cl_mem in = MAKE(clCreateBuffer(d.context, CL_MEM_READ_ONLY, size, NULL, &err));
    cl_mem out = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof values[0], values[0], &err));
    OK(clSetKernelArg(kernel, 0, sizeof in, &in));
    OK(clSetKernelArg(kernel, 1, sizeof out, &out));
    int changed = !strcmp(mode, "changed"), written = !strcmp(mode, "written"), same = !strcmp(mode, "same");

    if (!strcmp(mode, "null"))
        printf("%d\n", clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, size, NULL, 0, NULL, NULL));
    if (!strcmp(mode, "bad")) {
        void *bad = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(bad != MAP_FAILED);
        clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, size, bad, 0, NULL, NULL);
    }
    if (is_long) {
        void *much = calloc(1, size);
        CHECK(much != NULL);
        OK(clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, size, much, 0, NULL, NULL));
        free(much);
    }
    if (!strcmp(mode, "null"))
        OK(clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, size, values[0], 0, NULL, NULL));
    for (int i = 0; i < ROUNDS && (same || changed || written); i++) {
        int *from = values[same ? i % 2 : 0];
        if (changed)
            ((volatile int *)from)[ITEMS / 2] = i;
        if (same)
            usleep(20000);
        OK(clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, size, from, 0, NULL, NULL));
        if (written) {
            int other = i;
            OK(clEnqueueWriteBuffer(queue, in, CL_TRUE, 4, sizeof other, &other, 0, NULL, NULL));
        }
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    }
    OK(clFinish(queue));
    OK(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof values[1], values[1], 0, NULL, NULL));
    printf("%d\n", values[1][1]);
    OK(clReleaseMemObject(in));
    OK(clReleaseMemObject(out));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseProgram(program));
    dev_close(&d);
    return 0;
}
