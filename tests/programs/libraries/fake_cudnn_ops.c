/* Stands for libcudnn_ops.so.MAJOR, which needs libcudnn_graph.so.MAJOR. */
#include "cudnn.h"
#include "launch.h"

#include <stdlib.h>

struct cudnn_tensor { int type, dims, sizes[8], strides[8]; };

EXPORT int cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *desc)
{
    if (!desc)
        return BAD_PARAM;
    *desc = calloc(1, sizeof **desc);
    return 0;
}

EXPORT int cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc)
{
    free(desc);
    return 0;
}

EXPORT int cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, int type, int dims, const int *sizes, const int *strides)
{
    if (!desc || dims < 3 || dims > 8)
        return BAD_PARAM;
    desc->type = type;
    desc->dims = dims;
    for (int i = 0; i < dims; i++) {
        desc->sizes[i] = sizes[i];
        desc->strides[i] = strides[i];
    }
    return 0;
}

EXPORT int cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, int format, int type, int n, int c, int h, int w)
{
    int sizes[] = {n, c, h, w}, strides[] = {c * h * w, h * w, w, 1};
    return cudnnSetTensorNdDescriptor(desc, type, 4, sizes, strides);
}

EXPORT int cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t desc, int wanted, int *type, int *dims, int *sizes, int *strides)
{
    if (!desc)
        return BAD_PARAM;
    *type = desc->type;
    *dims = desc->dims;
    for (int i = 0; i < desc->dims && i < wanted; i++) {
        sizes[i] = desc->sizes[i];
        strides[i] = desc->strides[i];
    }
    return 0;
}

EXPORT int cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *desc)
{
    if (!desc)
        return BAD_PARAM;
    *desc = calloc(1, 64);
    return 0;
}

EXPORT int cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc)
{
    free(desc);
    return 0;
}

EXPORT int cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, int mode, const void *alpha, const void *beta,
                                                  cudnnTensorDescriptor_t x_desc, const void *x,
                                                  cudnnTensorDescriptor_t y_desc, void *y, cudnnTensorDescriptor_t derived,
                                                  const void *scale, const void *bias, double factor, void *mean,
                                                  void *variance, double epsilon, void *save_mean, void *save_variance)
{
    cudaStream_t stream = (cudaStream_t)-1;
    /* Of the part below. */
    int status = cudnnGetStream(handle, &stream);
    return status ? status : launch("normalize", stream);
}
