/* The part of transparent.c that calls wrongly, and prints the codes it gets. */
#ifndef HETRACE_TEST_TRANSPARENT_ERRORS_H
#define HETRACE_TEST_TRANSPARENT_ERRORS_H

#include "cl_util.h"

#define SAY(call) printf("%s\n    %d\n", #call, (int)CL(call))

/* A creation that should fail: code, and whether it gave a handle all the same (which
 * Oclgrind does; it is not released). */
#define SAY_NEW(call)                                                  \
    do {                                                               \
        cl_int err = -9999;                                            \
        void *made_ = (void *)CL(call);                                \
        printf("%s\n    %d %s\n", #call, err, made_ ? "made" : "NULL"); \
    } while (0)

/* The same for calls that nobody asks for the code. */
#define SAY_MADE(call)                                     \
    do {                                                   \
        void *made_ = (void *)CL(call);                    \
        printf("%s\n    %s\n", #call, made_ ? "made" : "NULL"); \
    } while (0)

/* Not here, since both implementations crash: a NULL kernel, a local size of 0, a number
 * of events without a list. And PoCL ends a program that asks for a queue on the device. */
static void wrong_enqueues(struct dev *d, cl_command_queue q, cl_mem m, cl_kernel k)
{
    int v[16] = {0};
    size_t one = 1, four[4] = {1, 1, 1, 1};
    cl_event e = NULL;
    cl_context other = MAKE(clCreateContext(NULL, 1, &d->device, NULL, NULL, &err));
    cl_event foreign = MAKE(clCreateUserEvent(other, &err));
    OK(clSetUserEventStatus(foreign, CL_COMPLETE)); /* some accept it, and would wait */

    SAY(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL)); /* no argument set */
    OK(clSetKernelArg(k, 0, sizeof m, &m));
    SAY(clEnqueueNDRangeKernel(q, k, 0, NULL, &one, NULL, 0, NULL, NULL));
    SAY(clEnqueueNDRangeKernel(q, k, 4, NULL, four, NULL, 0, NULL, NULL));
    SAY(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, &foreign, &e));
    SAY(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 1, &foreign, &e));
    SAY(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof v, NULL, 0, NULL, NULL));
    SAY(clEnqueueReadBuffer(q, m, CL_TRUE, 1000, sizeof v, v, 0, NULL, NULL));
    SAY(clEnqueueReadBuffer(q, NULL, CL_TRUE, 0, sizeof v, v, 0, NULL, NULL));
    SAY(clEnqueueFillBuffer(q, m, v, 3, 0, 60, 0, NULL, NULL));
    SAY(clEnqueueFillBuffer(q, m, NULL, 4, 0, 64, 0, NULL, NULL));
    SAY(clEnqueueCopyBuffer(q, m, m, 0, 4, 32, 0, NULL, NULL));
    SAY_NEW(clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 0, 1 << 20, 0, NULL, NULL, &err));
    SAY(clEnqueueUnmapMemObject(q, m, v, 0, NULL, NULL));
    printf("an event appeared: %d\n", e != NULL);
    OK(clReleaseEvent(foreign));
    OK(clReleaseContext(other));
}

static void wrong_handles(struct dev *d, cl_mem m)
{
    int v[16];
    size_t one = 1;
    cl_uint n;
    SAY(clFinish(NULL));
    SAY(clFlush(NULL));
    SAY(clReleaseCommandQueue(NULL));
    SAY(clRetainEvent(NULL));
    SAY(clReleaseEvent(NULL));
    SAY(clReleaseMemObject(NULL));
    SAY(clReleaseKernel(NULL));
    SAY(clReleaseContext(NULL));
    SAY(clSetKernelArg(NULL, 0, sizeof m, &m));
    SAY(clEnqueueNDRangeKernel(NULL, NULL, 1, NULL, &one, NULL, 0, NULL, NULL));
    SAY(clEnqueueReadBuffer(NULL, m, CL_TRUE, 0, sizeof v, v, 0, NULL, NULL));
    SAY(clWaitForEvents(0, NULL));
    SAY(clWaitForEvents(1, NULL));
    SAY(clGetEventInfo(NULL, CL_EVENT_COMMAND_TYPE, sizeof n, &n, NULL));
    SAY(clGetPlatformIDs(0, NULL, NULL));
    SAY(clGetPlatformIDs(0, &d->platform, NULL));
    SAY(clGetDeviceIDs(d->platform, 0, 0, NULL, &n));
    SAY(clGetDeviceIDs(d->platform, CL_DEVICE_TYPE_ALL, 0, NULL, NULL));
    SAY_NEW(clCreateCommandQueue(NULL, d->device, 0, &err));
    SAY_NEW(clCreateCommandQueue(d->context, NULL, 0, &err));
    SAY_NEW(clCreateBuffer(NULL, 0, 64, NULL, &err));
    SAY_NEW(clCreateUserEvent(NULL, &err));
    SAY_NEW(clCreateKernel(NULL, "x", &err));
}

static void wrong_names(struct dev *d, cl_command_queue q, cl_mem m, cl_kernel k)
{
    char text[16];
    size_t size = 4711;
    SAY(clGetPlatformInfo(d->platform, 0x1, sizeof text, text, NULL));
    SAY(clGetDeviceInfo(d->device, 0x1, sizeof text, text, NULL));
    SAY(clGetDeviceInfo(d->device, CL_DEVICE_VERSION, 1, text, &size));
    SAY(clGetContextInfo(d->context, 0x1, sizeof text, text, NULL));
    SAY(clGetCommandQueueInfo(q, 0x1, sizeof text, text, NULL));
    SAY(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, 1, text, NULL));
    SAY(clGetMemObjectInfo(m, 0x1, sizeof text, text, NULL));
    SAY(clGetKernelInfo(k, 0x1, sizeof text, text, NULL));
    SAY(clGetKernelWorkGroupInfo(k, d->device, 0x1, sizeof text, text, NULL));
}

static void wrong_creations(struct dev *d, cl_program p)
{
    cl_context_properties bad[] = {0x1, 0x2, 0};
    SAY_NEW(clCreateContext(bad, 1, &d->device, NULL, NULL, &err));
    SAY_NEW(clCreateContext(NULL, 0, NULL, NULL, NULL, &err));
    SAY_NEW(clCreateContext(NULL, 0, &d->device, NULL, NULL, &err));
    SAY_NEW(clCreateCommandQueue(d->context, d->device, 1 << 20, &err));
    SAY_NEW(clCreateBuffer(d->context, 0, 0, NULL, &err));
    SAY_NEW(clCreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, 64, NULL, &err));
    SAY_NEW(clCreateBuffer(d->context, 0xffff0000, 64, NULL, &err));
    SAY_NEW(clCreateKernel(p, "no_such_kernel", &err));
    SAY_NEW(clCreateProgramWithSource(d->context, 0, NULL, NULL, &err));
    if (!is_oclgrind(d->platform)) {
        cl_queue_properties unknown[] = {0x1, 0x2, 0};
        cl_queue_properties unknown_bits[] = {CL_QUEUE_PROPERTIES, 1 << 20, 0};
        SAY_NEW(clCreateCommandQueueWithProperties(d->context, d->device, unknown, &err));
        SAY_NEW(clCreateCommandQueueWithProperties(d->context, d->device, unknown_bits, &err));
        SAY_MADE(clCreateCommandQueueWithProperties(d->context, d->device, unknown, NULL));
    }

    SAY_MADE(clCreateBuffer(d->context, 0, 0, NULL, NULL));
    SAY_MADE(clCreateKernel(p, "no_such_kernel", NULL));
    SAY_MADE(clCreateCommandQueue(d->context, d->device, 1 << 20, NULL));
    cl_command_queue q = CL(clCreateCommandQueue(d->context, d->device, 0, NULL));
    CHECK(q);
    OK(clReleaseCommandQueue(q));
}

static void wrong_events(struct dev *d)
{
    cl_event e = MAKE(clCreateUserEvent(d->context, &err));
    cl_ulong t;
    SAY(clGetEventInfo(e, 0x1, sizeof t, &t, NULL));
    SAY(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof t, &t, NULL));
    SAY(clSetUserEventStatus(e, 1));
    SAY(clSetEventCallback(e, CL_COMPLETE, NULL, NULL));
    SAY(clSetUserEventStatus(e, CL_COMPLETE));
    SAY(clSetUserEventStatus(e, CL_COMPLETE));
    OK(clReleaseEvent(e));
}

static void wrong_calls(struct dev *d, cl_mem m)
{
    cl_program p = build(d, "__kernel void one(__global int *v) { v[0] = 1; }\n", NULL);
    cl_kernel k = MAKE(clCreateKernel(p, "one", &err));
    cl_command_queue q = MAKE(clCreateCommandQueue(d->context, d->device, 0, &err));
    wrong_handles(d, m);
    wrong_names(d, q, m, k);
    wrong_creations(d, p);
    wrong_events(d);
    wrong_enqueues(d, q, m, k);
    OK(clReleaseCommandQueue(q));
    OK(clReleaseKernel(k));
    OK(clReleaseProgram(p));
}

#endif
