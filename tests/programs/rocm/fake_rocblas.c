/* Stands for AMD's rocBLAS: handles, and products that check their sizes and launch one kernel on the HIP that is there.
 * Nothing is computed. All other functions of the model are made by tests/src/fake_rocm.rs. */
#include "rocblas.h"

#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

struct fake_rocblas {
    hipStream_t stream;
    int mode;
};

/* As rocBLAS' own kernels are called; exported, for HIP's fake to find its name. */
API void Cijk_Ailk_Bljk_SB_MT128x128x16(void **args) { (void)args; }

static rocblas_status launch(rocblas_handle handle, int64_t m, int64_t n) {
    if (!handle)
        return invalid_handle;
    if (m < 0 || n < 0)
        return invalid_size;
    hipLaunchKernel((const void *)(uintptr_t)Cijk_Ailk_Bljk_SB_MT128x128x16, (dim3){1, 1, 1}, (dim3){64, 1, 1}, NULL, 0,
                    handle->stream);
    return success;
}

API rocblas_status rocblas_create_handle(rocblas_handle *handle) {
    if (!handle)
        return invalid_handle;
    *handle = calloc(1, sizeof **handle);
    return success;
}

API rocblas_status rocblas_destroy_handle(rocblas_handle handle) {
    free(handle);
    return handle ? success : invalid_handle;
}

API rocblas_status rocblas_set_stream(rocblas_handle handle, hipStream_t stream) {
    if (!handle)
        return invalid_handle;
    handle->stream = stream;
    return success;
}

API rocblas_status rocblas_get_stream(rocblas_handle handle, hipStream_t *stream) {
    if (!handle)
        return invalid_handle;
    *stream = handle->stream;
    return success;
}

API rocblas_status rocblas_set_pointer_mode(rocblas_handle handle, int mode) {
    if (!handle)
        return invalid_handle;
    handle->mode = mode;
    return success;
}

API rocblas_status rocblas_get_version_string_size(size_t *length) {
    if (!length)
        return invalid_pointer;
    *length = sizeof "4.2.0.fake";
    return success;
}

API rocblas_status rocblas_get_version_string(char *text, size_t length) {
    if (!text)
        return invalid_pointer;
    if (length < sizeof "4.2.0.fake")
        return invalid_size;
    strcpy(text, "4.2.0.fake");
    return success;
}

API rocblas_status rocblas_sgemm(rocblas_handle handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a,
                                 int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
    (void)ta, (void)tb, (void)k, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    return launch(handle, m, n);
}

API rocblas_status rocblas_gemm_ex(rocblas_handle handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                                   int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, const void *c,
                                   int c_type, int ldc, void *d, int d_type, int ldd, int compute_type, int algo,
                                   int32_t solution, uint32_t flags) {
    (void)ta, (void)tb, (void)k, (void)alpha, (void)a, (void)a_type, (void)lda, (void)b, (void)b_type, (void)ldb, (void)beta;
    (void)c, (void)c_type, (void)ldc, (void)d, (void)d_type, (void)ldd, (void)compute_type, (void)algo, (void)solution;
    (void)flags;
    return launch(handle, m, n);
}

/* Results are there when it returns, if they are in memory of the host. */
API rocblas_status rocblas_ddot_strided_batched(rocblas_handle handle, int n, const double *x, int incx, int64_t stride_x,
                                                const double *y, int incy, int64_t stride_y, int batch_count, double *result) {
    (void)x, (void)incx, (void)stride_x, (void)y, (void)incy, (void)stride_y;
    rocblas_status status = launch(handle, n, batch_count);
    if (status || handle->mode == on_device)
        return status;
    hipStreamSynchronize(handle->stream);
    for (int i = 0; i < batch_count; i++)
        result[i] = i + 0.5;
    return success;
}

API rocblas_status rocblas_nrm2_ex(rocblas_handle handle, int n, const void *x, int x_type, int incx, void *result,
                                   int result_type, int execution_type) {
    (void)x, (void)x_type, (void)incx, (void)result_type, (void)execution_type;
    rocblas_status status = launch(handle, n, 1);
    if (!status && handle->mode == on_host)
        *(float *)result = 2.25;
    return status;
}
