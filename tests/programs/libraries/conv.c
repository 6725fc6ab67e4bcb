/* A convolution, a normalization, and a graph of operations, as a framework makes them. `parts` is the same program, linked
 * to the parts of cuDNN and not to what programs are linked to. */
#include "cudnn.h"
#include "program.h"

static cudnnHandle_t handle;

static void operations(void)
{
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    cudnnConvolutionFwdAlgoPerf_t results[3];
    int sizes[] = {16, 3, 224, 224}, strides[] = {150528, 50176, 224, 1}, filter[] = {64, 3, 7, 7};
    int pad[] = {3, 3}, stride[] = {2, 2}, dilation[] = {1, 1}, type, dims, read[8], steps[8], found;
    float one = 1, zero = 0;
    OK(cudnnCreateTensorDescriptor, &x);
    OK(cudnnCreateTensorDescriptor, &y);
    OK(cudnnCreateFilterDescriptor, &w);
    OK(cudnnCreateConvolutionDescriptor, &conv);
    OK(cudnnSetTensorNdDescriptor, x, DATA_FLOAT, 4, sizes, strides);
    OK(cudnnSetTensor4dDescriptor, y, TENSOR_NCHW, DATA_FLOAT, 16, 64, 112, 112);
    OK(cudnnSetFilterNdDescriptor, w, DATA_FLOAT, TENSOR_NCHW, 4, filter);
    OK(cudnnSetConvolutionNdDescriptor, conv, 2, pad, stride, dilation, 1, DATA_FLOAT);
    OK(cudnnGetTensorNdDescriptor, y, 8, &type, &dims, read, steps);
    OK(cudnnGetConvolutionForwardAlgorithm_v7, handle, x, w, conv, y, 3, &found, results);
    printf("%d dimensions, %d %d, step %d; algorithm %d of %d\n", dims, read[0], read[3], steps[1], results[0].algo, found);
    for (int i = 0; i < 4; i++)
        OK(cudnnConvolutionForward, handle, &one, x, DEVICE, w, DEVICE, conv, results[0].algo, DEVICE, 8192, &zero, y, DEVICE);
    OK(cudnnBatchNormalizationForwardTraining, handle, 1, &one, &zero, y, DEVICE, y, DEVICE, x, DEVICE, DEVICE, 0.125, DEVICE,
       DEVICE, 0.5, DEVICE, DEVICE);
    errno = 42;
    int refused = CALL(cudnnSetTensorNdDescriptor, x, DATA_FLOAT, 99, sizes, strides);
    printf("refused %d, errno %d: %s\n", refused, errno, CALL(cudnnGetErrorString, refused));
    OK(cudnnDestroyConvolutionDescriptor, conv);
    OK(cudnnDestroyFilterDescriptor, w);
    OK(cudnnDestroyTensorDescriptor, x);
    OK(cudnnDestroyTensorDescriptor, y);
}

static void graph(void)
{
    cudnnBackendDescriptor_t tensor, plan, pack;
    int64_t sizes[] = {8, 128, 64}, uids[] = {'x', 'y'}, read[8] = {0}, elements = 0, fraction[] = {2, 3};
    int type = DATA_HALF;
    char is_virtual = 1;
    float scale = 0.125f;
    double wide = 2.5;
    void *pointers[] = {DEVICE, NULL};
    OK(cudnnBackendCreateDescriptor, TENSOR_DESCRIPTOR, &tensor);
    OK(cudnnBackendSetAttribute, tensor, ATTR_DATA_TYPE, TYPE_DATA_TYPE, 1, &type);
    OK(cudnnBackendSetAttribute, tensor, ATTR_DIMENSIONS, TYPE_INT64, 3, sizes);
    OK(cudnnBackendSetAttribute, tensor, ATTR_VIRTUAL, TYPE_BOOLEAN, 1, &is_virtual);
    OK(cudnnBackendSetAttribute, tensor, ATTR_SCALE, TYPE_FLOAT, 1, &scale);
    OK(cudnnBackendSetAttribute, tensor, ATTR_SCALE, TYPE_DOUBLE, 1, &wide);
    OK(cudnnBackendSetAttribute, tensor, ATTR_SCALE, TYPE_FRACTION, 1, fraction);
    OK(cudnnBackendFinalize, tensor);
    OK(cudnnBackendGetAttribute, tensor, ATTR_DIMENSIONS, TYPE_INT64, 0, &elements, NULL);
    OK(cudnnBackendGetAttribute, tensor, ATTR_DIMENSIONS, TYPE_INT64, 8, &elements, read);
    OK(cudnnBackendCreateDescriptor, PLAN_DESCRIPTOR, &plan);
    OK(cudnnBackendSetAttribute, plan, ATTR_PLAN_HANDLE, TYPE_HANDLE, 1, &handle);
    OK(cudnnBackendSetAttribute, plan, ATTR_OPS, TYPE_DESCRIPTOR, 1, &tensor);
    OK(cudnnBackendSetAttribute, plan, ATTR_JSON, TYPE_CHAR, 9, "{\"a\": 1}");
    OK(cudnnBackendCreateDescriptor, 16, &pack);
    OK(cudnnBackendSetAttribute, pack, ATTR_UIDS, TYPE_INT64, 2, uids);
    OK(cudnnBackendSetAttribute, pack, ATTR_POINTERS, TYPE_VOID_PTR, 2, pointers);
    OK(cudnnBackendExecute, handle, plan, pack);
    int refused = CALL(cudnnBackendGetAttribute, tensor, ATTR_JSON, TYPE_CHAR, 8, &elements, read);
    printf("%ld: %ld %ld %ld, refused %d\n", elements, read[0], read[1], read[2], refused);
    OK(cudnnBackendDestroyDescriptor, pack);
    OK(cudnnBackendDestroyDescriptor, plan);
    OK(cudnnBackendDestroyDescriptor, tensor);
}

int main(void)
{
    size_t version = CALL(cudnnGetVersion);
    printf("version %zu\n", version);
    OK(cudnnCreate, &handle);
    OK(cudnnSetStream, handle, NULL);
    operations();
    graph();
    OK(cudnnDestroy, handle);
    counted();
    return 0;
}
