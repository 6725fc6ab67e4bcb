/* How the fakes here launch: one kernel by the fake runtime, on the fake driver. */
#pragma once
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct CUstream_st *cudaStream_t;
typedef struct { unsigned x, y, z; } dim3;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
int cudaDeviceSynchronize(void);

/* 0 if it went well. */
static inline int launch(const char *name, cudaStream_t stream)
{
    static void *kernel;
    dim3 grid = {1, 1, 1}, block = {128, 1, 1};
    void *context, *module;
    if (!kernel && (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
                    cuModuleLoadData(&module, "") || cuModuleGetFunction(&kernel, module, name)))
        return 1;
    return cudaLaunchKernel(kernel, grid, block, NULL, 0, stream);
}
