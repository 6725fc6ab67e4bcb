/* Stands for libcusolver.so.11, which calls the libraries below it, cuBLAS and cuSPARSE. */
#include "cusolver.h"
#include "launch.h"

#include <stdlib.h>

int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSgemm_v2(void *handle, int transa, int transb, int m, int n, int k, const float *alpha, const float *a, int lda,
                   const float *b, int ldb, const float *beta, float *c, int ldc);
int cusparseGetProperty(int type, int *value);

struct cusolver_handle { void *blas; cudaStream_t stream; };

EXPORT int cusolverGetProperty(int type, int *value)
{
    if (value)
        *value = type == 0 ? MAJOR : type == 1 ? 7 : 0;
    return 0;
}

EXPORT int cusolverDnCreate(cusolverDnHandle_t *handle)
{
    int major;
    if (!handle)
        return SOLVER_INVALID_VALUE;
    *handle = calloc(1, sizeof **handle);
    return cublasCreate_v2(&(*handle)->blas) || cusparseGetProperty(0, &major) ? SOLVER_NOT_INITIALIZED : 0;
}

EXPORT int cusolverDnDestroy(cusolverDnHandle_t handle)
{
    if (handle)
        cublasDestroy_v2(handle->blas);
    free(handle);
    return 0;
}

EXPORT int cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return SOLVER_INVALID_VALUE;
    handle->stream = stream;
    return 0;
}

EXPORT int cusolverDnSgetrf_bufferSize(cusolverDnHandle_t handle, int m, int n, float *a, int lda, int *lwork)
{
    if (!lwork)
        return SOLVER_INVALID_VALUE;
    *lwork = m * n;
    return 0;
}

EXPORT int cusolverDnSgetrf(cusolverDnHandle_t handle, int m, int n, float *a, int lda, float *workspace, int *ipiv, int *info)
{
    float one = 1;
    if (!handle || m < 0)
        return SOLVER_INVALID_VALUE;
    return launch("panel", handle->stream) || cublasSgemm_v2(handle->blas, 0, 0, m, n, n, &one, a, lda, a, lda, &one, a, lda);
}

EXPORT int cusolverDnXsyevdx(cusolverDnHandle_t handle, void *params, int jobz, int range, int uplo, int64_t n, int a_type,
                             void *a, int64_t lda, void *vl, void *vu, int64_t il, int64_t iu, int64_t *found, int w_type,
                             void *w, int compute, void *on_device, size_t device_bytes, void *on_host, size_t host_bytes,
                             int *info)
{
    if (!handle)
        return SOLVER_INVALID_VALUE;
    *found = 5;
    return launch("eigen", handle->stream);
}

EXPORT int cusolverDnSSgesv(cusolverDnHandle_t handle, int n, int nrhs, float *a, int lda, int *ipiv, float *b, int ldb,
                            float *x, int ldx, void *workspace, size_t bytes, int *iterations, int *info)
{
    if (!handle)
        return SOLVER_INVALID_VALUE;
    *iterations = -3;
    return launch("refine", handle->stream);
}
