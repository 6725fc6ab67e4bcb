/* A program that allocates: buffers made, written, mapped and released, and kernels made of a program.
 *
 *   allocations [times=4000]
 */
#include "cl_util.h"

static void one(struct dev *d, cl_command_queue queue, cl_program program, int size)
{
    int value = 7;
    cl_mem buffer = MAKE(clCreateBuffer(d->context, CL_MEM_READ_WRITE, size, NULL, &err));
    cl_kernel kernel = MAKE(clCreateKernel(program, "nothing", &err));
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL));
    int *mapped = MAKE(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, sizeof value, 0, NULL, NULL, &err));
    CHECK(*mapped == value);
    OK(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clReleaseKernel(kernel));
    OK(clReleaseMemObject(buffer));
}

int main(int argc, char **argv)
{
    int times = arg_or(argc, argv, 1, 4000);
    struct dev d = dev_open();
    cl_program program = build(&d, "__kernel void nothing(void) {}\n", NULL);
    cl_command_queue queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    for (int i = 0; i < times; i++)
        one(&d, queue, program, 64 << i % 12);
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseProgram(program));
    dev_close(&d);
    return 0;
}
