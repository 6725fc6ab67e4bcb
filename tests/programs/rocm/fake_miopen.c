/* Stands for AMD's MIOpen: objects, and operations that launch one kernel on the HIP that is there. Nothing is computed. All
 * other functions of the model are made by tests/src/fake_rocm.rs. */
#include "miopen.h"

#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

struct fake_miopen {
    hipStream_t stream;
};

/* As a kernel of MIOpen's is called; exported, for HIP's fake to find its name. */
API void miopenSp3AsmConv_v21_1_3_fp32_f3x2_stride1(void **args) { (void)args; }

static miopenStatus_t launch(miopenHandle_t handle) {
    if (!handle)
        return bad_parameter;
    hipLaunchKernel((const void *)(uintptr_t)miopenSp3AsmConv_v21_1_3_fp32_f3x2_stride1, (dim3){1, 1, 1}, (dim3){64, 1, 1}, NULL,
                    0, handle->stream);
    return success;
}

static miopenStatus_t make(void *place, size_t size) {
    *(void **)place = calloc(1, size);
    return success;
}

static miopenStatus_t end(void *object) {
    free(object);
    return object ? success : bad_parameter;
}

API miopenStatus_t miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
    *major = 3, *minor = 2, *patch = 1;
    return success;
}

API const char *miopenGetErrorString(miopenStatus_t status) {
    return status == bad_parameter ? "miopenStatusBadParm" : "miopenStatusUnknownError";
}

API miopenStatus_t miopenCreateWithStream(miopenHandle_t *handle, hipStream_t stream) {
    make(handle, sizeof **handle);
    (*handle)->stream = stream;
    return success;
}

API miopenStatus_t miopenDestroy(miopenHandle_t handle) { return end(handle); }
API miopenStatus_t miopenCreateTensorDescriptor(miopenTensorDescriptor_t *tensor) { return make(tensor, 64); }
API miopenStatus_t miopenDestroyTensorDescriptor(miopenTensorDescriptor_t tensor) { return end(tensor); }
API miopenStatus_t miopenCreateConvolutionDescriptor(miopenConvolutionDescriptor_t *made) { return make(made, 64); }
API miopenStatus_t miopenDestroyConvolutionDescriptor(miopenConvolutionDescriptor_t made) { return end(made); }
API miopenStatus_t miopenDestroyProblem(miopenProblem_t problem) { return end(problem); }
API miopenStatus_t miopenDestroySolution(miopenSolution_t solution) { return end(solution); }
API miopenStatus_t miopenBackendDestroyDescriptor(miopenBackendDescriptor_t descriptor) { return end(descriptor); }

API miopenStatus_t miopenSetTensorDescriptor(miopenTensorDescriptor_t tensor, int type, int dims, const int *sizes,
                                             const int *strides) {
    (void)tensor, (void)type, (void)sizes, (void)strides;
    return dims < 1 || dims > 5 ? bad_parameter : success;
}

API miopenStatus_t miopenConvolutionForwardGetWorkSpaceSize(miopenHandle_t handle, miopenTensorDescriptor_t w,
                                                            miopenTensorDescriptor_t x,
                                                            miopenConvolutionDescriptor_t convolution,
                                                            miopenTensorDescriptor_t y, size_t *size) {
    (void)handle, (void)w, (void)x, (void)convolution, (void)y;
    *size = 4096;
    return success;
}

/* Each algorithm is tried, and waited for. */
API miopenStatus_t miopenFindConvolutionForwardAlgorithm(miopenHandle_t handle, miopenTensorDescriptor_t xd, const void *x,
                                                         miopenTensorDescriptor_t wd, const void *w,
                                                         miopenConvolutionDescriptor_t convolution,
                                                         miopenTensorDescriptor_t yd, void *y, int wanted, int *found,
                                                         miopenConvAlgoPerf_t *results, void *space, size_t size,
                                                         bool exhaustive) {
    (void)xd, (void)x, (void)wd, (void)w, (void)convolution, (void)yd, (void)y, (void)space, (void)size, (void)exhaustive;
    *found = wanted < 2 ? wanted : 2;
    for (int i = 0; i < *found; i++) {
        launch(handle);
        results[i] = (miopenConvAlgoPerf_t){.algorithm = i ? 3 : 0, .time = 0.5f + i, .memory = 4096};
    }
    hipStreamSynchronize(handle->stream);
    return success;
}

API miopenStatus_t miopenConvolutionForward(miopenHandle_t handle, const void *alpha, miopenTensorDescriptor_t xd, const void *x,
                                            miopenTensorDescriptor_t wd, const void *w,
                                            miopenConvolutionDescriptor_t convolution, int algorithm, const void *beta,
                                            miopenTensorDescriptor_t yd, void *y, void *space, size_t size) {
    (void)alpha, (void)xd, (void)x, (void)wd, (void)w, (void)algorithm, (void)beta, (void)yd, (void)y, (void)space, (void)size;
    return convolution ? launch(handle) : bad_parameter;
}

API miopenStatus_t miopenCreateConvProblem(miopenProblem_t *problem, miopenConvolutionDescriptor_t convolution, int direction) {
    (void)convolution, (void)direction;
    return make(problem, 64);
}

API miopenStatus_t miopenFindSolutions(miopenHandle_t handle, miopenProblem_t problem, void *options,
                                       miopenSolution_t *solutions, size_t *found, size_t most) {
    (void)handle, (void)problem, (void)options;
    *found = most < 1 ? most : 1;
    return *found ? make(solutions, 64) : success;
}

API miopenStatus_t miopenRunSolution(miopenHandle_t handle, miopenSolution_t solution, size_t count,
                                     const miopenTensorArgument_t *tensors, void *space, size_t size) {
    (void)solution, (void)count, (void)tensors, (void)space, (void)size;
    return launch(handle);
}

API miopenStatus_t miopenBackendCreateDescriptor(int type, miopenBackendDescriptor_t *descriptor) {
    (void)type;
    return make(descriptor, 64);
}
