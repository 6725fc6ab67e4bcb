/* Stands for libcublasLt.so.MAJOR, which is below libcublas.so.MAJOR and called by programs, too: descriptors that keep
 * their attributes, and products that launch one kernel by the runtime that is there. */
#include "cublaslt.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct { unsigned x, y, z; } dim3;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);

struct lt_handle { void *kernel; };
struct lt_desc { uint64_t attributes[64]; };

EXPORT int cublasLtCreate(cublasLtHandle_t *handle)
{
    void *context, *module, *kernel;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "") || cuModuleGetFunction(&kernel, module, "matmul"))
        return NOT_INITIALIZED;
    *handle = malloc(sizeof **handle);
    (*handle)->kernel = kernel;
    return SUCCESS;
}

EXPORT int cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return SUCCESS;
}

static int made(struct lt_desc **desc)
{
    *desc = calloc(1, sizeof **desc);
    return SUCCESS;
}

static int gone(struct lt_desc *desc)
{
    free(desc);
    return SUCCESS;
}

static int set(struct lt_desc *desc, int attribute, const void *value, size_t size)
{
    if (attribute < 0 || attribute >= 64 || size > 8)
        return INVALID_VALUE;
    memcpy(&desc->attributes[attribute], value, size);
    return SUCCESS;
}

EXPORT int cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, int compute, int scale) { return made(desc); }
EXPORT int cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return gone(desc); }
EXPORT int cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, int attribute, const void *value, size_t size)
{
    return set(desc, attribute, value, size);
}

EXPORT int cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc, int attribute, void *value, size_t size,
                                          size_t *written)
{
    if (attribute < 0 || attribute >= 64 || size > 8)
        return INVALID_VALUE;
    memcpy(value, &desc->attributes[attribute], size);
    if (written)
        *written = size;
    return SUCCESS;
}

EXPORT int cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    return made(layout);
}

EXPORT int cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return gone(layout); }
EXPORT int cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) { return made(preference); }
EXPORT int cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return gone(preference); }
EXPORT int cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, int attribute, const void *value,
                                                size_t size)
{
    return set(preference, attribute, value, size);
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                          cublasLtMatmulPreference_t preference, int wanted,
                                          cublasLtMatmulHeuristicResult_t *results, int *found)
{
    memset(results, 0, sizeof *results);
    results->workspace = 4096;
    results->waves = 0.75f;
    *found = 1;
    return SUCCESS;
}

EXPORT int cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                          cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                          const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                          cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                          cudaStream_t stream)
{
    dim3 grid = {1, 1, 1}, block = {128, 1, 1};
    return cudaLaunchKernel(handle->kernel, grid, block, NULL, 0, stream) ? 13 : SUCCESS;
}
