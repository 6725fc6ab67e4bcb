/* A library to be preloaded that records nothing: each of the calls of the article's iteration only takes DELAY_NS
 * nanoseconds longer. With it `bench sustained` shows what any tracer costs there whose calls take so long.
 *
 * DELAY_PROFILE=1: queues are made so that the driver notes times of commands, and each command has an event, as who wants
 * these times must have it; the event is released at once, and its times are not asked for. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t ticks;
static int profile;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) static void calibrate(void)
{
    const char *ns = getenv("DELAY_NS");
    uint64_t ns_begin = now_ns(), begin = __rdtsc();
    while (now_ns() - ns_begin < 2000000)
        ;
    double rate = (double)(__rdtsc() - begin) / (double)(now_ns() - ns_begin);
    ticks = (uint64_t)((ns ? atof(ns) : 0) * rate);
    profile = getenv("DELAY_PROFILE") != NULL;
}

static inline void delay(void)
{
    uint64_t begin = __rdtsc();
    while (__rdtsc() - begin < ticks)
        ;
}

#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                             \
    delay()

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    REAL(clSetKernelArg);
    return real(kernel, index, size, value);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                      cl_int *error)
{
    REAL(clCreateCommandQueue);
    return real(context, device, properties | (profile ? CL_QUEUE_PROFILING_ENABLE : 0), error);
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                    const cl_queue_properties *properties, cl_int *error)
{
    static const cl_queue_properties profiled[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    REAL(clCreateCommandQueueWithProperties);
    return real(context, device, profile ? profiled : properties, error);
}

/* Ends what was begun to get a command's times. */
static cl_int done(cl_int status, cl_event own)
{
    if (own)
        clReleaseEvent(own);
    return status;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                              const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait,
                              cl_event *event)
{
    REAL(clEnqueueNDRangeKernel);
    cl_event own = NULL;
    cl_int status =
        real(queue, kernel, dimensions, offset, global, local, waits, wait, profile && !event ? &own : event);
    return done(status, own);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void *to,
                           cl_uint waits, const cl_event *wait, cl_event *event)
{
    REAL(clEnqueueReadBuffer);
    cl_event own = NULL;
    cl_int status = real(queue, buffer, blocking, offset, size, to, waits, wait, profile && !event ? &own : event);
    return done(status, own);
}

cl_int clFinish(cl_command_queue queue)
{
    REAL(clFinish);
    return real(queue);
}
