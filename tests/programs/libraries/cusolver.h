/* What the programs here use of cuSOLVER. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct cusolver_handle *cusolverDnHandle_t;
enum { SOLVER_NOT_INITIALIZED = 1, SOLVER_INVALID_VALUE = 3 };

int cusolverGetProperty(int type, int *value);
int cusolverDnCreate(cusolverDnHandle_t *handle);
int cusolverDnDestroy(cusolverDnHandle_t handle);
int cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
int cusolverDnSgetrf_bufferSize(cusolverDnHandle_t handle, int m, int n, float *a, int lda, int *lwork);
int cusolverDnSgetrf(cusolverDnHandle_t handle, int m, int n, float *a, int lda, float *workspace, int *ipiv, int *info);
int cusolverDnXsyevdx(cusolverDnHandle_t handle, void *params, int jobz, int range, int uplo, int64_t n, int a_type, void *a,
                      int64_t lda, void *vl, void *vu, int64_t il, int64_t iu, int64_t *found, int w_type, void *w,
                      int compute, void *on_device, size_t device_bytes, void *on_host, size_t host_bytes, int *info);
int cusolverDnSSgesv(cusolverDnHandle_t handle, int n, int nrhs, float *a, int lda, int *ipiv, float *b, int ldb, float *x,
                     int ldx, void *workspace, size_t bytes, int *iterations, int *info);
