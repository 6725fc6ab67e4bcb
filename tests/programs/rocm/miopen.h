/* What the programs here need of MIOpen. */
#pragma once
#include "../hip/hip.h"
#include <stdbool.h>

typedef int miopenStatus_t;
enum { success = 0, invalid_value = 2, bad_parameter = 3, unsupported = 8 };
enum { type_float = 1, convolution = 0, forward_gemm = 0, kind_data_type = 1, kind_int64 = 3 };
enum { tensor_x = 1, tensor_w = 2, tensor_y = 3, forward = 0 };
typedef struct fake_miopen *miopenHandle_t;
typedef struct fake_tensor *miopenTensorDescriptor_t;
typedef struct fake_convolution *miopenConvolutionDescriptor_t;
typedef struct fake_problem *miopenProblem_t;
typedef struct fake_solution *miopenSolution_t;
typedef struct fake_backend *miopenBackendDescriptor_t;
typedef struct {
    int algorithm;
    float time;
    size_t memory;
} miopenConvAlgoPerf_t;
typedef struct {
    int id;
    miopenTensorDescriptor_t *descriptor;
    void *buffer;
} miopenTensorArgument_t;

miopenStatus_t miopenGetVersion(size_t *major, size_t *minor, size_t *patch);
const char *miopenGetErrorString(miopenStatus_t status);
miopenStatus_t miopenCreateWithStream(miopenHandle_t *handle, hipStream_t stream);
miopenStatus_t miopenDestroy(miopenHandle_t handle);
miopenStatus_t miopenCreateTensorDescriptor(miopenTensorDescriptor_t *tensor);
miopenStatus_t miopenSet4dTensorDescriptor(miopenTensorDescriptor_t tensor, int type, int n, int c, int h, int w);
miopenStatus_t miopenSetTensorDescriptor(miopenTensorDescriptor_t tensor, int type, int dims, const int *sizes, const int *strides);
miopenStatus_t miopenDestroyTensorDescriptor(miopenTensorDescriptor_t tensor);
miopenStatus_t miopenCreateConvolutionDescriptor(miopenConvolutionDescriptor_t *convolution);
miopenStatus_t miopenInitConvolutionNdDescriptor(miopenConvolutionDescriptor_t convolution, int dims, const int *pads,
                                                 const int *strides, const int *dilations, int mode);
miopenStatus_t miopenDestroyConvolutionDescriptor(miopenConvolutionDescriptor_t convolution);
miopenStatus_t miopenConvolutionForwardGetWorkSpaceSize(miopenHandle_t handle, miopenTensorDescriptor_t w,
                                                        miopenTensorDescriptor_t x, miopenConvolutionDescriptor_t convolution,
                                                        miopenTensorDescriptor_t y, size_t *size);
miopenStatus_t miopenFindConvolutionForwardAlgorithm(miopenHandle_t handle, miopenTensorDescriptor_t xd, const void *x,
                                                     miopenTensorDescriptor_t wd, const void *w,
                                                     miopenConvolutionDescriptor_t convolution, miopenTensorDescriptor_t yd,
                                                     void *y, int wanted, int *found, miopenConvAlgoPerf_t *results,
                                                     void *space, size_t size, bool exhaustive);
miopenStatus_t miopenConvolutionForward(miopenHandle_t handle, const void *alpha, miopenTensorDescriptor_t xd, const void *x,
                                        miopenTensorDescriptor_t wd, const void *w, miopenConvolutionDescriptor_t convolution,
                                        int algorithm, const void *beta, miopenTensorDescriptor_t yd, void *y, void *space,
                                        size_t size);
miopenStatus_t miopenCreateConvProblem(miopenProblem_t *problem, miopenConvolutionDescriptor_t convolution, int direction);
miopenStatus_t miopenDestroyProblem(miopenProblem_t problem);
miopenStatus_t miopenFindSolutions(miopenHandle_t handle, miopenProblem_t problem, void *options, miopenSolution_t *solutions,
                                   size_t *found, size_t most);
miopenStatus_t miopenRunSolution(miopenHandle_t handle, miopenSolution_t solution, size_t count,
                                 const miopenTensorArgument_t *tensors, void *space, size_t size);
miopenStatus_t miopenDestroySolution(miopenSolution_t solution);
miopenStatus_t miopenBackendCreateDescriptor(int type, miopenBackendDescriptor_t *descriptor);
miopenStatus_t miopenBackendSetAttribute(miopenBackendDescriptor_t descriptor, int name, int type, int64_t count, void *values);
miopenStatus_t miopenBackendDestroyDescriptor(miopenBackendDescriptor_t descriptor);
