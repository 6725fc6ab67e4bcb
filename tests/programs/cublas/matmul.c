/* Products of cuBLASLt as a framework makes them: descriptors, layouts, a heuristic, the product. Counts its calls. */
#include "../hip/counted.h"
#include "cublaslt.h"

#include <stdlib.h>

static void ok(int status, int line)
{
    if (status != SUCCESS) {
        printf("line %d: status %d\n", line, status);
        exit(2);
    }
}
#define OK(function, ...) ok(CALL(function, __VA_ARGS__), __LINE__)
#define DEVICE ((void *)0x700000001000)

int main(void)
{
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t results[4];
    int transposed = OP_T, epilogue = EPILOGUE_RELU_BIAS, read = 0, found = 0;
    void *bias = DEVICE;
    uint64_t room = 1 << 25;
    size_t written = 0;
    float one = 1, zero = 0;
    OK(cublasLtCreate, &handle);
    OK(cublasLtMatmulDescCreate, &desc, COMPUTE_32F, CUDA_R_32F);
    OK(cublasLtMatmulDescSetAttribute, desc, MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    OK(cublasLtMatmulDescSetAttribute, desc, MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    OK(cublasLtMatmulDescSetAttribute, desc, MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    OK(cublasLtMatmulDescGetAttribute, desc, MATMUL_DESC_TRANSA, &read, sizeof read, &written);
    OK(cublasLtMatmulDescGetAttribute, desc, MATMUL_DESC_EPILOGUE, &read, sizeof read, NULL);
    OK(cublasLtMatrixLayoutCreate, &a, CUDA_R_16BF, 768, 512, 768);
    OK(cublasLtMatrixLayoutCreate, &b, CUDA_R_16BF, 768, 256, 768);
    OK(cublasLtMatrixLayoutCreate, &c, CUDA_R_16BF, 512, 256, 512);
    OK(cublasLtMatmulPreferenceCreate, &preference);
    OK(cublasLtMatmulPreferenceSetAttribute, preference, PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    OK(cublasLtMatmulAlgoGetHeuristic, handle, desc, a, b, c, c, preference, 4, results, &found);
    for (int i = 0; i < 5; i++)
        OK(cublasLtMatmul, handle, desc, &one, DEVICE, a, DEVICE, b, &zero, DEVICE, c, DEVICE, c, &results[0].algo, DEVICE,
           4096, NULL);
    int refused = CALL(cublasLtMatmulDescSetAttribute, desc, 77, &transposed, sizeof transposed);
    printf("read %d, %zu bytes; found %d, refused %d\n", read, written, found, refused);
    OK(cublasLtMatmulPreferenceDestroy, preference);
    OK(cublasLtMatrixLayoutDestroy, a);
    OK(cublasLtMatrixLayoutDestroy, b);
    OK(cublasLtMatrixLayoutDestroy, c);
    OK(cublasLtMatmulDescDestroy, desc);
    OK(cublasLtDestroy, handle);
    counted();
    return 0;
}
