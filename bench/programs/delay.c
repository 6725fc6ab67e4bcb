/* A library to be preloaded that records nothing: each of the calls of the article's iteration only takes DELAY_NS
 * nanoseconds longer. With it `bench sustained` shows what any tracer costs there whose calls take so long. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t ticks;

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

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                              const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait,
                              cl_event *event)
{
    REAL(clEnqueueNDRangeKernel);
    return real(queue, kernel, dimensions, offset, global, local, waits, wait, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void *to,
                           cl_uint waits, const cl_event *wait, cl_event *event)
{
    REAL(clEnqueueReadBuffer);
    return real(queue, buffer, blocking, offset, size, to, waits, wait, event);
}

cl_int clFinish(cl_command_queue queue)
{
    REAL(clFinish);
    return real(queue);
}
