/* What the programs here use of cuDNN. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct cudnn_handle *cudnnHandle_t;
typedef struct cudnn_tensor *cudnnTensorDescriptor_t;
typedef struct cudnn_filter *cudnnFilterDescriptor_t;
typedef struct cudnn_convolution *cudnnConvolutionDescriptor_t;
typedef void *cudnnBackendDescriptor_t;
typedef struct {
    int algo, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
} cudnnConvolutionFwdAlgoPerf_t;

enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000, INTERNAL_ERROR = 4000 };
enum { DATA_FLOAT = 0, DATA_HALF = 2, TENSOR_NCHW = 0 };
enum { TENSOR_DESCRIPTOR = 17, PLAN_DESCRIPTOR = 5 };
enum { ATTR_DATA_TYPE = 901, ATTR_DIMENSIONS = 902, ATTR_VIRTUAL = 907, ATTR_PLAN_HANDLE = 400, ATTR_SCALE = 3403 };
enum { ATTR_UIDS = 1000, ATTR_POINTERS = 1001, ATTR_OPS = 801, ATTR_JSON = 405 };
enum { TYPE_HANDLE, TYPE_DATA_TYPE, TYPE_BOOLEAN, TYPE_INT64, TYPE_FLOAT, TYPE_DOUBLE, TYPE_VOID_PTR };
enum { TYPE_DESCRIPTOR = 15, TYPE_CHAR = 24, TYPE_FRACTION = 26 };

size_t cudnnGetVersion(void);
int cudnnGetProperty(int type, int *value);
const char *cudnnGetErrorString(int status);
int cudnnCreate(cudnnHandle_t *handle);
int cudnnDestroy(cudnnHandle_t handle);
int cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
int cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream);
int cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *desc);
int cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc);
int cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, int format, int type, int n, int c, int h, int w);
int cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, int type, int dims, const int *sizes, const int *strides);
int cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t desc, int wanted, int *type, int *dims, int *sizes, int *strides);
int cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *desc);
int cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc);
int cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, int type, int format, int dims, const int *sizes);
int cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, int mode, const void *alpha, const void *beta,
                                           cudnnTensorDescriptor_t x_desc, const void *x, cudnnTensorDescriptor_t y_desc,
                                           void *y, cudnnTensorDescriptor_t derived, const void *scale, const void *bias,
                                           double factor, void *mean, void *variance, double epsilon, void *save_mean,
                                           void *save_variance);
int cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *desc);
int cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc);
int cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t desc, int length, const int *pad, const int *stride,
                                    const int *dilation, int mode, int type);
int cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                           cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y, int wanted,
                                           int *found, cudnnConvolutionFwdAlgoPerf_t *results);
int cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_desc, const void *x,
                            cudnnFilterDescriptor_t w_desc, const void *w, cudnnConvolutionDescriptor_t conv, int algo,
                            void *workspace, size_t bytes, const void *beta, cudnnTensorDescriptor_t y_desc, void *y);
int cudnnBackendCreateDescriptor(int type, cudnnBackendDescriptor_t *desc);
int cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc);
int cudnnBackendFinalize(cudnnBackendDescriptor_t desc);
int cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc, int name, int type, int64_t count, const void *elements);
int cudnnBackendGetAttribute(cudnnBackendDescriptor_t desc, int name, int type, int64_t wanted, int64_t *count,
                             void *elements);
int cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack);
