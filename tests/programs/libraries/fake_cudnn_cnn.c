/* Stands for libcudnn_cnn.so.MAJOR, which needs the parts libcudnn_ops.so.MAJOR and libcudnn_graph.so.MAJOR and calls them
 * by the names that programs call, and which multiplies by cuBLASLt. */
#include "cudnn.h"
#include "launch.h"

#include <stdlib.h>
#include <string.h>

int cublasLtCreate(void **handle);
int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout,
                   const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const void *algo, void *workspace,
                   size_t bytes, cudaStream_t stream);

EXPORT int cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *desc)
{
    if (!desc)
        return BAD_PARAM;
    *desc = calloc(1, 64);
    return 0;
}

EXPORT int cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc)
{
    free(desc);
    return 0;
}

EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                                  cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y, int wanted,
                                                  int *found, cudnnConvolutionFwdAlgoPerf_t *results)
{
    if (!results || wanted < 2)
        return BAD_PARAM;
    memset(results, 0, 2 * sizeof *results);
    results[0] = (cudnnConvolutionFwdAlgoPerf_t){.algo = 1, .time = 0.5f, .memory = 8192};
    results[1] = (cudnnConvolutionFwdAlgoPerf_t){.algo = 6, .status = NOT_SUPPORTED};
    *found = 2;
    return 0;
}

EXPORT int cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_desc, const void *x,
                                   cudnnFilterDescriptor_t w_desc, const void *w, cudnnConvolutionDescriptor_t conv, int algo,
                                   void *workspace, size_t bytes, const void *beta, cudnnTensorDescriptor_t y_desc, void *y)
{
    static void *below;
    cudaStream_t stream = (cudaStream_t)-1;
    cudnnTensorDescriptor_t folded;
    int type = -1, dims = 0, sizes[4], strides[4];
    if (!handle || !x_desc)
        return BAD_PARAM;
    if (cudnnGetStream(handle, &stream) || stream == (cudaStream_t)-1 || cudnnCreateTensorDescriptor(&folded) ||
        cudnnSetTensor4dDescriptor(folded, TENSOR_NCHW, DATA_HALF, 1, 2, 3, 4) ||
        cudnnGetTensorNdDescriptor(folded, 4, &type, &dims, sizes, strides) || type != DATA_HALF || sizes[3] != 4 ||
        cudnnDestroyTensorDescriptor(folded) || (!below && cublasLtCreate(&below)))
        return INTERNAL_ERROR;
    return cublasLtMatmul(below, NULL, alpha, x, NULL, w, NULL, beta, y, NULL, y, NULL, NULL, workspace, bytes, stream)
               ? INTERNAL_ERROR
               : 0;
}
