/* An OpenCL interposer as one makes it with LTTng-UST today: a preloaded library, two
 * tracepoints a call. It covers the functions that the benchmark programs call, and
 * records what hetrace records of them, so that the two can be compared.
 */
#include "clpeer.h"
#include "clpeer_tp.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFINE(name) __typeof__(&name) real_##name

DEFINE(clGetPlatformIDs);
DEFINE(clSetKernelArg);
DEFINE(clEnqueueNDRangeKernel);
DEFINE(clEnqueueReadBuffer);
DEFINE(clFinish);
DEFINE(clGetEventInfo);
DEFINE(clGetKernelInfo);
DEFINE(clCreateCommandQueue);
DEFINE(clCreateCommandQueueWithProperties);
DEFINE(clGetEventProfilingInfo);
DEFINE(clSetEventCallback);
DEFINE(clRetainEvent);
DEFINE(clReleaseEvent);

#define FIND(name) (real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* The benchmark programs are linked to the loader, so that the next one exists. */
__attribute__((constructor)) static void find_all(void)
{
    FIND(clGetPlatformIDs);
    FIND(clSetKernelArg);
    FIND(clEnqueueNDRangeKernel);
    FIND(clEnqueueReadBuffer);
    FIND(clFinish);
    FIND(clGetEventInfo);
    FIND(clGetKernelInfo);
    FIND(clCreateCommandQueue);
    FIND(clCreateCommandQueueWithProperties);
    FIND(clGetEventProfilingInfo);
    FIND(clSetEventCallback);
    FIND(clRetainEvent);
    FIND(clReleaseEvent);
}

/* Only the wrappers are to be seen from outside. */
#pragma GCC visibility push(default)

#define EVENT(name, ...) lttng_ust_tracepoint(clpeer, name, __VA_ARGS__)

cl_int clGetPlatformIDs(cl_uint n, cl_platform_id *platforms, cl_uint *count)
{
    EVENT(clGetPlatformIDs_entry, n, platforms, count);
    cl_int r = REAL(clGetPlatformIDs)(n, platforms, count);
    if (lttng_ust_tracepoint_enabled(clpeer, clGetPlatformIDs_exit)) {
        cl_uint total = r == CL_SUCCESS && count ? *count : 0;
        cl_uint got = r != CL_SUCCESS || !platforms ? 0 : count && total < n ? total : n;
        lttng_ust_do_tracepoint(clpeer, clGetPlatformIDs_exit, r, total, platforms, got);
    }
    return r;
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    EVENT(clSetKernelArg_entry, kernel, index, size, value);
    cl_int r = REAL(clSetKernelArg)(kernel, index, size, value);
    EVENT(clSetKernelArg_exit, r);
    return r;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dim,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint n, const cl_event *list, cl_event *event)
{
    cl_event mine = NULL;
    int timed = device_times_wanted();
    EVENT(clEnqueueNDRangeKernel_entry, queue, kernel, dim, offset, global, local, n, list, event);
    cl_event *out = timed && !event ? &mine : event;
    cl_int r = REAL(clEnqueueNDRangeKernel)(queue, kernel, dim, offset, global, local, n, list, out);
    EVENT(clEnqueueNDRangeKernel_exit, r, r == CL_SUCCESS && out ? *out : NULL);
    if (timed && r == CL_SUCCESS)
        device_times_of(*out, !event);
    return r;
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                           size_t size, void *ptr, cl_uint n, const cl_event *list, cl_event *event)
{
    cl_event mine = NULL;
    int timed = device_times_wanted();
    EVENT(clEnqueueReadBuffer_entry, queue, buffer, blocking, offset, size, ptr, n, list, event);
    cl_event *out = timed && !event ? &mine : event;
    cl_int r = REAL(clEnqueueReadBuffer)(queue, buffer, blocking, offset, size, ptr, n, list, out);
    EVENT(clEnqueueReadBuffer_exit, r, r == CL_SUCCESS && out ? *out : NULL);
    if (timed && r == CL_SUCCESS)
        device_times_of(*out, !event);
    return r;
}

cl_int clFinish(cl_command_queue queue)
{
    EVENT(clFinish_entry, queue);
    cl_int r = REAL(clFinish)(queue);
    EVENT(clFinish_exit, r);
    return r;
}

/* How many bytes of an answer there are to record. */
static size_t answered(cl_int r, size_t size, const void *value, const size_t *size_ret)
{
    if (r != CL_SUCCESS || !value)
        return 0;
    return size_ret && *size_ret < size ? *size_ret : size;
}

#define QUERY(name, object_type, info_type)                                                    \
    cl_int name(object_type object, info_type what, size_t size, void *value, size_t *size_ret) \
    {                                                                                          \
        EVENT(name##_entry, object, what, size, value, size_ret);                              \
        cl_int r = REAL(name)(object, what, size, value, size_ret);                            \
        if (lttng_ust_tracepoint_enabled(clpeer, name##_exit))                                 \
            lttng_ust_do_tracepoint(clpeer, name##_exit, r,                                    \
                                    r == CL_SUCCESS && size_ret ? *size_ret : 0, value,        \
                                    answered(r, size, value, size_ret));                       \
        return r;                                                                              \
    }

QUERY(clGetEventInfo, cl_event, cl_event_info)
QUERY(clGetKernelInfo, cl_kernel, cl_kernel_info)

#pragma GCC visibility pop
