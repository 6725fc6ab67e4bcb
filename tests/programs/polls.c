/* Polling: the same question with the same answer, very often.
 *
 *   polls [user|kernel] [polls=1000000]
 *
 * user:   asks a user event, which changes only once, in the middle
 * kernel: asks a kernel's event; the answers change as the command advances, and the
 *         polling goes on after it is complete
 */
#include "cl_util.h"

static const char *source =
    "__kernel void spin(__global int *out, int n) {\n"
    "  int v = out[0];\n"
    "  for (int i = 0; i < n; i++) v = v * 1664525 + 1013904223;\n"
    "  out[0] = v;\n"
    "}\n";

static long poll_event(cl_event event, long times, cl_int wanted)
{
    long seen = 0;
    for (long i = 0; i < times; i++) {
        cl_int status = 99;
        OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
        CHECK(status >= CL_COMPLETE && status <= CL_QUEUED);
        seen += status == wanted;
    }
    return seen;
}

static void poll_user(struct dev *d, long times)
{
    cl_event event = MAKE(clCreateUserEvent(d->context, &err));
    long before = poll_event(event, times / 2, CL_SUBMITTED);
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    long after = poll_event(event, times - times / 2, CL_COMPLETE);
    OK(clReleaseEvent(event));
    CHECK(before == times / 2 && after == times - times / 2);
    printf("submitted %ld complete %ld\n", before, after);
}

static void poll_kernel(struct dev *d, long times)
{
    cl_command_queue queue =
        MAKE(clCreateCommandQueue(d->context, d->device, CL_QUEUE_PROFILING_ENABLE, &err));
    cl_program program = build(d, source, NULL);
    cl_kernel kernel = MAKE(clCreateKernel(program, "spin", &err));
    int zero = 0, turns = 50 * 1000 * 1000;
    cl_mem out = MAKE(clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                     sizeof zero, &zero, &err));
    OK(clSetKernelArg(kernel, 0, sizeof out, &out));
    OK(clSetKernelArg(kernel, 1, sizeof turns, &turns));
    size_t one = 1;
    cl_event event;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, &event));
    OK(clFlush(queue));
    poll_event(event, times, CL_COMPLETE);
    OK(clWaitForEvents(1, &event));
    OK(clReleaseEvent(event));
    OK(clReleaseMemObject(out));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(queue));
    printf("polled a kernel %ld times\n", times);
}

int main(int argc, char **argv)
{
    int kernel = argc > 1 && strcmp(argv[1], "kernel") == 0;
    long times = arg_or(argc, argv, 2, 1000000);
    struct dev d = dev_open();
    if (kernel)
        poll_kernel(&d, times);
    else
        poll_user(&d, times);
    dev_close(&d);
    expect_print();
    return 0;
}
