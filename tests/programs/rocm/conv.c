/* A convolution of MIOpen's, three ways. */
#include "../hip/counted.h"
#include "miopen.h"

#include <errno.h>

int main(void) {
    /* Nobody may read there: it stands for memory of the device. */
    void *device = (void *)8;
    float alpha = 1, beta = 0;
    hipStream_t stream;
    miopenHandle_t handle;
    miopenTensorDescriptor_t x, w, y;
    miopenConvolutionDescriptor_t conv;
    miopenConvAlgoPerf_t perf[4];
    miopenProblem_t problem;
    miopenSolution_t solutions[2];
    miopenBackendDescriptor_t tensor;
    size_t major, minor, patch, space = 0, found = 0;
    int algorithms = 0;
    hipInit(0);
    hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
    CALL(miopenGetVersion, &major, &minor, &patch);
    CALL(miopenCreateWithStream, &handle, stream);
    CALL(miopenCreateTensorDescriptor, &x);
    CALL(miopenCreateTensorDescriptor, &w);
    CALL(miopenCreateTensorDescriptor, &y);
    CALL(miopenSet4dTensorDescriptor, x, type_float, 16, 64, 56, 56);
    CALL(miopenSetTensorDescriptor, w, type_float, 4, (int[]){128, 64, 3, 3}, (int[]){576, 9, 3, 1});
    CALL(miopenSet4dTensorDescriptor, y, type_float, 16, 128, 56, 56);
    CALL(miopenCreateConvolutionDescriptor, &conv);
    CALL(miopenInitConvolutionNdDescriptor, conv, 2, (int[]){1, 1}, (int[]){2, 2}, (int[]){1, 1}, convolution);
    CALL(miopenConvolutionForwardGetWorkSpaceSize, handle, w, x, conv, y, &space);
    CALL(miopenFindConvolutionForwardAlgorithm, handle, x, device, w, device, conv, y, device, 4, &algorithms, perf, device, space,
         false);
    CALL(miopenConvolutionForward, handle, &alpha, x, device, w, device, conv, perf[1].algorithm, &beta, y, device, device, space);
    CALL(miopenCreateConvProblem, &problem, conv, forward);
    CALL(miopenFindSolutions, handle, problem, NULL, solutions, &found, 2);
    miopenTensorArgument_t arguments[] = {{tensor_x, &x, device}, {tensor_w, &w, device}, {tensor_y, NULL, device}};
    CALL(miopenRunSolution, handle, solutions[0], 3, arguments, device, space);
    CALL(miopenBackendCreateDescriptor, 30, &tensor);
    CALL(miopenBackendSetAttribute, tensor, 0, kind_int64, 4, (int64_t[]){16, 64, 56, 56});
    errno = 42;
    int dims = CALL(miopenSetTensorDescriptor, x, type_float, 99, (int[]){1}, (int[]){1});
    int none = CALL(miopenConvolutionForward, handle, &alpha, x, device, w, device, NULL, 0, &beta, y, device, device, space);
    const char *text = CALL(miopenGetErrorString, dims);
    printf("refused %d %d, errno %d: %s\n", dims, none, errno, text);
    hipStreamSynchronize(stream);
    CALL(miopenBackendDestroyDescriptor, tensor);
    CALL(miopenDestroySolution, solutions[0]);
    CALL(miopenDestroyProblem, problem);
    CALL(miopenDestroyConvolutionDescriptor, conv);
    CALL(miopenDestroyTensorDescriptor, w);
    CALL(miopenDestroyTensorDescriptor, y);
    CALL(miopenDestroy, handle);
    printf("version %zu.%zu.%zu, %d algorithms, %zu solutions, %zu bytes\n", major, minor, patch, algorithms, found, space);
    counted();
    return 0;
}
