/* rocBLAS' functions with scalars of each type, on the host and on the device. */
#include "../hip/counted.h"
#include "rocblas.h"

#include <errno.h>

int main(void) {
    static char x[64];
    /* Nobody may read there: it stands for memory of the device. */
    void *device = (void *)8;
    float alpha = 1.5, beta = -0.25, norm = 0;
    double dots[2];
    rocblas_double_complex turn = {0.5, -2};
    uint16_t half = 0x3c00;
    hipStream_t stream, back;
    rocblas_handle handle, leaked;
    char text[32];
    size_t length;
    hipInit(0);
    hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
    CALL(rocblas_get_version_string_size, &length);
    CALL(rocblas_get_version_string, text, length);
    CALL(rocblas_create_handle, &handle);
    CALL(rocblas_set_stream, handle, stream);
    CALL(rocblas_get_stream, handle, &back);
    CALL(rocblas_set_vector, 4, 4, x, 1, device, 1);
    CALL(rocblas_sgemm, handle, none, transpose, 128, 256, 512, &alpha, device, 128, device, 512, &beta, device, 128);
    CALL(rocblas_zscal_64, handle, 5000000000, &turn, device, 1);
    CALL(rocblas_gemm_ex, handle, none, none, 16, 32, 64, &alpha, device, f16_r, 16, device, f16_r, 64, &beta, device, f32_r, 16,
         device, f32_r, 16, f32_r, 1, 7, 6);
    CALL(rocblas_gemm_ex, handle, none, none, 8, 8, 8, &half, device, f16_r, 8, device, f16_r, 8, &half, device, f16_r, 8, device,
         f16_r, 8, f16_r, 0, 0, 0);
    CALL(rocblas_ddot_strided_batched, handle, 100, device, 1, 100, device, 1, 100, 2, dots);
    CALL(rocblas_nrm2_ex, handle, 100, device, f32_r, 1, &norm, f32_r, f32_r);
    CALL(rocblas_set_pointer_mode, handle, on_device);
    CALL(rocblas_sgemm, handle, none, none, 3, 3, 3, device, device, 3, device, 3, device, device, 3);
    CALL(rocblas_ddot_strided_batched, handle, 7, device, 1, 100, device, 1, 100, 2, device);
    CALL(rocblas_set_pointer_mode, handle, on_host);
    CALL(rocblas_strmm, handle, left, upper, none, unit, 9, 9, &alpha, device, 9, device, 9, device, 9);
    errno = 42;
    int refused = CALL(rocblas_sgemm, handle, none, none, -1, 2, 3, &alpha, device, 1, device, 3, &beta, device, 1);
    int nobody = CALL(rocblas_set_stream, NULL, stream);
    int managing = CALL(rocblas_is_managing_device_memory, handle);
    printf("refused %d %d, managing %d, errno %d\n", refused, nobody, managing, errno);
    hipStreamSynchronize(stream);
    CALL(rocblas_destroy_handle, handle);
    CALL(rocblas_create_handle, &leaked);
    printf("version %s, dots %g %g, norm %g, stream %d\n", text, dots[0], dots[1], norm, back == stream);
    counted();
    return 0;
}
