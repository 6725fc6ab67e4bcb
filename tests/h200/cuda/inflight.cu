// Kernels launched one after the other without a wait: inflight [KERNELS=60000] [STREAMS=1]
// Each adds 1, so the sum says how many ran.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__global__ void tiny(int *sum) { atomicAdd(sum, 1); }

int main(int argc, char **argv)
{
    int kernels = argc > 1 ? atoi(argv[1]) : 60000, streams = argc > 2 ? atoi(argv[2]) : 1;
    int *sum, result = 0;
    OK(cudaMalloc(&sum, sizeof *sum));
    OK(cudaMemset(sum, 0, sizeof *sum));
    cudaStream_t *stream = (cudaStream_t *)calloc(streams, sizeof *stream);
    for (int i = 0; i < streams; i++)
        OK(cudaStreamCreate(&stream[i]));
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < kernels; i++)
        tiny<<<1, 1, 0, stream[i % streams]>>>(sum);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
    printf("%d kernels\n", result);
    return result != kernels;
}
