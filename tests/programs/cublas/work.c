/* A program of cuBLAS that counts its own calls and prints what they came to. `work device` gives scalars in memory that
 * nobody may read, as that of a device is, and `work misuse` uses a handle that is gone and leaves another behind. */
#include "../hip/counted.h"
#include "cublas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void ok(int status, int line)
{
    if (status != SUCCESS) {
        printf("line %d: status %d\n", line, status);
        exit(2);
    }
}
#define OK(function, ...) ok(CALL(function, __VA_ARGS__), __LINE__)
/* Memory of a device, as far as the library here goes. */
#define DEVICE ((void *)0x700000001000)

static cublasHandle_t handle;

static void settings(void)
{
    int version, mode;
    cudaStream_t stream = (cudaStream_t)1;
    OK(cublasGetProperty, 0, &version);
    OK(cublasCreate_v2, &handle);
    OK(cublasGetVersion_v2, handle, &version);
    OK(cublasSetStream_v2, handle, NULL);
    OK(cublasGetStream_v2, handle, &stream);
    OK(cublasSetMathMode, handle, TF32_TENSOR_OP_MATH);
    OK(cublasSetWorkspace_v2, handle, DEVICE, 4096);
    OK(cublasGetPointerMode_v2, handle, &mode);
    printf("version %d, stream %p, mode %d\n", version, (void *)stream, mode);
}

static void products(void)
{
    float one = 1, half = 0.5f;
    float complex_one[2] = {1, -2};
    double two = 2, zero = 0;
    unsigned short one_half = 0x3c00;
    for (int i = 1; i <= 10; i++)
        OK(cublasSgemm_v2, handle, OP_N, OP_T, 64, 32, 16 * i, &one, DEVICE, 64, DEVICE, 32, &half, DEVICE, 64);
    OK(cublasSgemm_v2_64, handle, OP_N, OP_N, 1L << 33, 1, 1, &half, DEVICE, 1L << 33, DEVICE, 1, &one, DEVICE, 1L << 33);
    OK(cublasGemmEx, handle, OP_T, OP_N, 128, 256, 512, &one, DEVICE, CUDA_R_16BF, 512, DEVICE, CUDA_R_16BF, 512, &half,
       DEVICE, CUDA_R_16BF, 128, COMPUTE_32F, GEMM_DEFAULT_TENSOR_OP);
    OK(cublasGemmEx, handle, OP_N, OP_N, 8, 8, 8, &two, DEVICE, CUDA_R_64F, 8, DEVICE, CUDA_R_64F, 8, &zero, DEVICE,
       CUDA_R_64F, 8, COMPUTE_64F, GEMM_DEFAULT);
    OK(cublasGemmEx, handle, OP_N, OP_N, 9, 9, 9, complex_one, DEVICE, CUDA_C_32F, 9, DEVICE, CUDA_C_32F, 9, complex_one,
       DEVICE, CUDA_C_32F, 9, COMPUTE_32F_FAST_TF32, GEMM_DEFAULT);
    OK(cublasGemmEx, handle, OP_N, OP_N, 7, 7, 7, &one_half, DEVICE, CUDA_R_16F, 7, DEVICE, CUDA_R_16F, 7, &one_half,
       DEVICE, CUDA_R_16F, 7, COMPUTE_16F, GEMM_DEFAULT);
    OK(cublasGemmStridedBatchedEx, handle, OP_N, OP_N, 5, 6, 7, &one, DEVICE, CUDA_R_32F, 5, 35, DEVICE, CUDA_R_32F, 7, 42,
       &half, DEVICE, CUDA_R_32F, 5, 30, 12, COMPUTE_32F, GEMM_DEFAULT);
    int n[] = {3, 4}, transposed[] = {OP_N, OP_T}, sizes[] = {10, 20};
    float alphas[] = {1.5f, 2.5f}, betas[] = {0, 1};
    OK(cublasSgemmGroupedBatched, handle, transposed, transposed, n, n, n, alphas, DEVICE, n, DEVICE, n, betas, DEVICE, n, 2,
       sizes);
    float dot = 0;
    OK(cublasSdot_v2, handle, 100, DEVICE, 1, DEVICE, 1, &dot);
    printf("dot %g\n", dot);
}

static void failures(void)
{
    float one = 1;
    errno = 42;
    int negative = CALL(cublasSgemm_v2, handle, OP_N, OP_N, -1, 1, 1, &one, DEVICE, 1, DEVICE, 1, &one, DEVICE, 1);
    int mixed = CALL(cublasGemmEx, handle, OP_N, OP_N, 1, 1, 1, &one, DEVICE, CUDA_R_16BF, 1, DEVICE, CUDA_R_32F, 1, &one,
                     DEVICE, CUDA_R_32F, 1, COMPUTE_32F, GEMM_DEFAULT);
    printf("failed %d %d, errno %d: %s\n", negative, mixed, errno, CALL(cublasGetStatusString, negative));
}

/* Numbers in registers for numbers with a fraction, two or four of them. */
static void without_a_handle(void)
{
    OK(cublasInit, );
    cuComplex c = {1.5f, -2.5f};
    cuDoubleComplex z = {3.25, -4.75};
    count("cublasCaxpy");
    cublasCaxpy(2, c, DEVICE, 1, DEVICE, 3);
    cuComplex dot = CALL(cublasCdotu, 7, DEVICE, 1, DEVICE, 1);
    printf("%g %g\n", dot.x, dot.y);
    count("cublasZaxpy");
    cublasZaxpy(2, z, DEVICE, 1, DEVICE, 3);
    cuDoubleComplex wide = CALL(cublasZdotu, 7, DEVICE, 1, DEVICE, 1);
    printf("%g %g\n", wide.x, wide.y);
    count("cublasCrot");
    cublasCrot(2, DEVICE, 1, DEVICE, 3, 0.5f, c);
    wide = CALL(cublasZdotu, 0, DEVICE, 1, DEVICE, 1);
    printf("%g %g, largest %d, error %d\n", wide.x, wide.y, CALL(cublasIsamax, 5, DEVICE, 1), CALL(cublasGetError));
}

/* Scalars that must not be read: before, in and after that mode. */
static void on_the_device(void)
{
    float one = 3;
    float *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(cublasSetPointerMode_v2, handle, POINTER_MODE_DEVICE);
    OK(cublasSgemm_v2, handle, OP_N, OP_N, 1, 1, 1, unreadable, DEVICE, 1, DEVICE, 1, unreadable, DEVICE, 1);
    OK(cublasGemmEx, handle, OP_N, OP_N, 1, 1, 1, unreadable, DEVICE, CUDA_R_32F, 1, DEVICE, CUDA_R_32F, 1, unreadable,
       DEVICE, CUDA_R_32F, 1, COMPUTE_32F, GEMM_DEFAULT);
    OK(cublasSdot_v2, handle, 100, DEVICE, 1, DEVICE, 1, unreadable);
    int refused = CALL(cublasSetPointerMode_v2, handle, 9);
    OK(cublasSgemm_v2, handle, OP_N, OP_N, 2, 2, 2, unreadable, DEVICE, 2, DEVICE, 2, unreadable, DEVICE, 2);
    OK(cublasSetPointerMode_v2, handle, POINTER_MODE_HOST);
    OK(cublasSgemm_v2, handle, OP_N, OP_N, 3, 3, 3, &one, DEVICE, 3, DEVICE, 3, &one, DEVICE, 3);
    printf("refused %d\n", refused);
}

static void misuse(void)
{
    float one = 1;
    cublasHandle_t left;
    OK(cublasCreate_v2, &left);
    OK(cublasDestroy_v2, handle);
    int status = CALL(cublasSgemm_v2, handle, OP_N, OP_N, 1, 1, 1, &one, DEVICE, 1, DEVICE, 1, &one, DEVICE, 1);
    printf("gone %d\n", status);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    settings();
    if (strcmp(what, "misuse") == 0) {
        misuse();
    } else if (strcmp(what, "device") == 0) {
        on_the_device();
        OK(cublasDestroy_v2, handle);
    } else {
        products();
        failures();
        without_a_handle();
        OK(cublasDestroy_v2, handle);
    }
    counted();
    return 0;
}
