/* Stands for libcublas.so.MAJOR, whose symbols carry its version: handles with modes, and products that check their
 * arguments and launch one kernel by the runtime that is there. Matrices are left alone. Functions of before CUDA 4
 * compute with what they are passed, so that it shows whether it came.
 *
 * Products of many matrices are made by the library below, libcublasLt.so.MAJOR.
 *
 * Every function that the model has is exported; those that do nothing here are made by tests/src/fake_cublas.rs. */
#include "cublaslt.h"

#include <stdlib.h>

#ifndef MAJOR
#define MAJOR 13
#endif
#define EXPORT __attribute__((visibility("default")))

typedef struct { unsigned x, y, z; } dim3;

/* The fake driver's and its runtime's. */
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
int cudaDeviceSynchronize(void);

struct cublas_context { int alive, mode, math; cudaStream_t stream; void *kernel; cublasLtHandle_t below; };
enum { ALIVE = 0xb1a5 };

EXPORT int cublasCreate_v2(cublasHandle_t *handle)
{
    void *context, *module, *kernel;
    if (!handle)
        return INVALID_VALUE;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "") || cuModuleGetFunction(&kernel, module, "gemm"))
        return NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    if (cublasLtCreate(&(*handle)->below))
        return NOT_INITIALIZED;
    (*handle)->alive = ALIVE;
    (*handle)->kernel = kernel;
    return SUCCESS;
}

static int is_good(cublasHandle_t handle) { return handle && handle->alive == ALIVE; }

EXPORT int cublasDestroy_v2(cublasHandle_t handle)
{
    if (!is_good(handle))
        return NOT_INITIALIZED;
    /* Kept: what a program does with it afterwards is to be an error, and no crash. */
    handle->alive = 0;
    return cudaDeviceSynchronize() ? NOT_INITIALIZED : SUCCESS;
}

EXPORT int cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    *version = MAJOR * 10000 + 100;
    return is_good(handle) ? SUCCESS : NOT_INITIALIZED;
}

EXPORT int cublasGetProperty(int type, int *value)
{
    *value = type == 0 ? MAJOR : type == 1 ? 1 : 0;
    return type <= 2 ? SUCCESS : INVALID_VALUE;
}

EXPORT const char *cublasGetStatusName(int status)
{
    return status == INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_SUCCESS";
}

EXPORT const char *cublasGetStatusString(int status)
{
    switch (status) {
    case SUCCESS: return "success";
    case NOT_INITIALIZED: return "the library was not initialized";
    case INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case NOT_SUPPORTED: return "the functionality requested is not supported";
    default: return "unknown status";
    }
}

EXPORT int cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    if (!is_good(handle))
        return NOT_INITIALIZED;
    handle->stream = stream;
    return SUCCESS;
}

EXPORT int cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    if (!is_good(handle))
        return NOT_INITIALIZED;
    *stream = handle->stream;
    return SUCCESS;
}

EXPORT int cublasSetPointerMode_v2(cublasHandle_t handle, int mode)
{
    if (!is_good(handle))
        return NOT_INITIALIZED;
    if (mode != POINTER_MODE_HOST && mode != POINTER_MODE_DEVICE)
        return INVALID_VALUE;
    handle->mode = mode;
    return SUCCESS;
}

EXPORT int cublasGetPointerMode_v2(cublasHandle_t handle, int *mode)
{
    if (!is_good(handle))
        return NOT_INITIALIZED;
    *mode = handle->mode;
    return SUCCESS;
}

static int launch(cublasHandle_t handle, int bad)
{
    dim3 grid = {1, 1, 1}, block = {128, 1, 1};
    if (!is_good(handle))
        return NOT_INITIALIZED;
    if (bad)
        return INVALID_VALUE;
    return cudaLaunchKernel(handle->kernel, grid, block, NULL, 0, handle->stream) ? 13 : SUCCESS;
}

EXPORT int cublasSgemm_v2(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const float *alpha,
                          const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc)
{
    return launch(handle, m < 0 || n < 0 || k < 0 || lda < m || !alpha);
}

EXPORT int cublasSgemm_v2_64(cublasHandle_t handle, int transa, int transb, int64_t m, int64_t n, int64_t k,
                             const float *alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                             const float *beta, float *c, int64_t ldc)
{
    return launch(handle, m < 0 || n < 0 || k < 0 || lda < m || !alpha);
}

EXPORT int cublasGemmEx(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const void *alpha,
                        const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c,
                        int c_type, int ldc, int compute, int algo)
{
    return a_type != b_type ? NOT_SUPPORTED : launch(handle, m < 0 || n < 0 || k < 0 || !alpha);
}

EXPORT int cublasGemmStridedBatchedEx(cublasHandle_t handle, int transa, int transb, int m, int n, int k,
                                      const void *alpha, const void *a, int a_type, int lda, long long stride_a,
                                      const void *b, int b_type, int ldb, long long stride_b, const void *beta, void *c,
                                      int c_type, int ldc, long long stride_c, int batch, int compute, int algo)
{
    if (!is_good(handle) || batch < 0)
        return INVALID_VALUE;
    return cublasLtMatmul(handle->below, NULL, alpha, a, NULL, b, NULL, beta, c, NULL, c, NULL, NULL, NULL, 0,
                          handle->stream);
}

EXPORT int cublasSgemmGroupedBatched(cublasHandle_t handle, const int *transa, const int *transb, const int *m,
                                     const int *n, const int *k, const float *alpha, const float *const *a, const int *lda,
                                     const float *const *b, const int *ldb, const float *beta, float *const *c,
                                     const int *ldc, int groups, const int *size)
{
    return launch(handle, groups < 0);
}

EXPORT int cublasSdot_v2(cublasHandle_t handle, int n, const float *x, int incx, const float *y, int incy, float *result)
{
    int status = launch(handle, 0);
    if (status == SUCCESS && handle->mode == POINTER_MODE_HOST) {
        cudaDeviceSynchronize();
        *result = (float)n / 2;
    }
    return status;
}

/* ---- Without a handle. The last scalar is kept, and answered. */

static cuDoubleComplex last;

EXPORT void cublasCaxpy(int n, cuComplex alpha, const cuComplex *x, int incx, cuComplex *y, int incy)
{
    last = (cuDoubleComplex){alpha.x * n + incx, alpha.y * n + incy};
}

EXPORT void cublasZaxpy(int n, cuDoubleComplex alpha, const cuDoubleComplex *x, int incx, cuDoubleComplex *y, int incy)
{
    last = (cuDoubleComplex){alpha.x * n + incx, alpha.y * n + incy};
}

EXPORT void cublasCrot(int n, cuComplex *x, int incx, cuComplex *y, int incy, float c, cuComplex s)
{
    last = (cuDoubleComplex){c * n + incx, s.x * 100 + s.y + incy};
}

EXPORT cuComplex cublasCdotu(int n, const cuComplex *x, int incx, const cuComplex *y, int incy)
{
    return (cuComplex){(float)last.x + n, (float)last.y};
}

EXPORT cuDoubleComplex cublasZdotu(int n, const cuDoubleComplex *x, int incx, const cuDoubleComplex *y, int incy)
{
    return (cuDoubleComplex){last.x + n, last.y};
}

EXPORT int cublasIsamax(int n, const float *x, int incx) { return n - 1; }
