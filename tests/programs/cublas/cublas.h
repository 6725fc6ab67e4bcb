/* What the programs here use of cuBLAS, under the names that its library exports. */
#pragma once
#include <stdint.h>
#include <stddef.h>

typedef struct cublas_context *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct { float x, y; } cuComplex;
typedef struct { double x, y; } cuDoubleComplex;

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { OP_N = 0, OP_T = 1 };
enum { POINTER_MODE_HOST = 0, POINTER_MODE_DEVICE = 1 };
enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_C_32F = 4, CUDA_R_16BF = 14 };
enum { COMPUTE_16F = 64, COMPUTE_32F = 68, COMPUTE_32F_FAST_TF32 = 77, COMPUTE_64F = 70 };
enum { GEMM_DEFAULT = -1, GEMM_DEFAULT_TENSOR_OP = 99, TF32_TENSOR_OP_MATH = 3 };

int cublasCreate_v2(cublasHandle_t *handle);
int cublasDestroy_v2(cublasHandle_t handle);
int cublasGetVersion_v2(cublasHandle_t handle, int *version);
int cublasGetProperty(int type, int *value);
const char *cublasGetStatusName(int status);
const char *cublasGetStatusString(int status);
int cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
int cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
int cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes);
int cublasSetPointerMode_v2(cublasHandle_t handle, int mode);
int cublasGetPointerMode_v2(cublasHandle_t handle, int *mode);
int cublasSetMathMode(cublasHandle_t handle, int mode);
int cublasSetVector(int n, int size, const void *x, int incx, void *y, int incy);
int cublasSgemm_v2(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const float *alpha, const float *a,
                   int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
int cublasSgemm_v2_64(cublasHandle_t handle, int transa, int transb, int64_t m, int64_t n, int64_t k, const float *alpha,
                      const float *a, int64_t lda, const float *b, int64_t ldb, const float *beta, float *c, int64_t ldc);
int cublasGemmEx(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a,
                 int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                 int compute, int algo);
int cublasGemmStridedBatchedEx(cublasHandle_t handle, int transa, int transb, int m, int n, int k, const void *alpha,
                               const void *a, int a_type, int lda, long long stride_a, const void *b, int b_type, int ldb,
                               long long stride_b, const void *beta, void *c, int c_type, int ldc, long long stride_c,
                               int batch, int compute, int algo);
int cublasSgemmGroupedBatched(cublasHandle_t handle, const int *transa, const int *transb, const int *m, const int *n,
                              const int *k, const float *alpha, const float *const *a, const int *lda, const float *const *b,
                              const int *ldb, const float *beta, float *const *c, const int *ldc, int groups, const int *size);
int cublasSdot_v2(cublasHandle_t handle, int n, const float *x, int incx, const float *y, int incy, float *result);

/* Of the interface without a handle: complex numbers are passed and returned themselves. */
int cublasInit(void);
int cublasGetError(void);
void cublasCaxpy(int n, cuComplex alpha, const cuComplex *x, int incx, cuComplex *y, int incy);
void cublasZaxpy(int n, cuDoubleComplex alpha, const cuDoubleComplex *x, int incx, cuDoubleComplex *y, int incy);
cuComplex cublasCdotu(int n, const cuComplex *x, int incx, const cuComplex *y, int incy);
cuDoubleComplex cublasZdotu(int n, const cuDoubleComplex *x, int incx, const cuDoubleComplex *y, int incy);
void cublasCrot(int n, cuComplex *x, int incx, cuComplex *y, int incy, float c, cuComplex s);
int cublasIsamax(int n, const float *x, int incx);
