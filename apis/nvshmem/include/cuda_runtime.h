/* What NVSHMEM's headers need of it. */
#pragma once
#include <stddef.h>
#define __device__
#define __host__
#define __forceinline__ inline
#define __global__
typedef struct CUstream_st *cudaStream_t;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef int cudaError_t;
typedef struct { unsigned int x, y, z; } dim3;
typedef struct { float x, y; } float2;
typedef struct { double x, y; } double2;
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    void *attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;
