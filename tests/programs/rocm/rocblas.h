/* What the programs here need of rocBLAS. */
#pragma once
#include "../hip/hip.h"
#include <stdbool.h>

typedef int rocblas_status;
enum { success = 0, invalid_handle = 1, invalid_pointer = 3, invalid_size = 4 };
enum { none = 111, transpose = 112, upper = 121, left = 141, unit = 132 };
enum { f16_r = 150, f32_r = 151, f64_c = 155, i32_r = 162 };
enum { on_host = 0, on_device = 1 };
typedef struct fake_rocblas *rocblas_handle;
typedef struct {
    double x, y;
} rocblas_double_complex;

rocblas_status rocblas_create_handle(rocblas_handle *handle);
rocblas_status rocblas_destroy_handle(rocblas_handle handle);
rocblas_status rocblas_set_stream(rocblas_handle handle, hipStream_t stream);
rocblas_status rocblas_get_stream(rocblas_handle handle, hipStream_t *stream);
rocblas_status rocblas_set_pointer_mode(rocblas_handle handle, int mode);
rocblas_status rocblas_get_version_string_size(size_t *length);
rocblas_status rocblas_get_version_string(char *text, size_t length);
bool rocblas_is_managing_device_memory(rocblas_handle handle);
rocblas_status rocblas_set_vector(int n, int size, const void *x, int incx, void *y, int incy);
rocblas_status rocblas_sgemm(rocblas_handle handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a,
                             int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
rocblas_status rocblas_zscal_64(rocblas_handle handle, int64_t n, const rocblas_double_complex *alpha, rocblas_double_complex *x,
                                int64_t incx);
rocblas_status rocblas_ddot_strided_batched(rocblas_handle handle, int n, const double *x, int incx, int64_t stride_x,
                                            const double *y, int incy, int64_t stride_y, int batch_count, double *result);
rocblas_status rocblas_gemm_ex(rocblas_handle handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                               int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, const void *c,
                               int c_type, int ldc, void *d, int d_type, int ldd, int compute_type, int algo, int32_t solution,
                               uint32_t flags);
rocblas_status rocblas_nrm2_ex(rocblas_handle handle, int n, const void *x, int x_type, int incx, void *result, int result_type,
                               int execution_type);
/* Its form before 4.0, and that of today. */
#ifdef BEFORE_4
rocblas_status rocblas_strmm(rocblas_handle handle, int side, int uplo, int ta, int diag, int m, int n, const float *alpha,
                             const float *a, int lda, float *b, int ldb);
#else
rocblas_status rocblas_strmm(rocblas_handle handle, int side, int uplo, int ta, int diag, int m, int n, const float *alpha,
                             const float *a, int lda, const float *b, int ldb, float *c, int ldc);
#endif
