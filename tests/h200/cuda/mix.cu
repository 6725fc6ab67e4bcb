// What a CUDA program does, a little of everything, with results that can be compared:
//
//   mix             kernels, copies of all kinds, events, pools, graphs, launch attributes
//   mix fault       a kernel with an illegal address, then what the program hears of it
//   mix spin        launches without end: to be killed
//   mix exit        launches and leaves without waiting
//
// Prints a checksum of everything computed. Built with a linked and with a static runtime.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                                       \
    do {                                                                                  \
        cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                       \
            printf("%s: %s\n", #call, cudaGetErrorName(error));                           \
            exit(3);                                                                      \
        }                                                                                 \
    } while (0)

__global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * by + 1.0f;
}

__global__ void sums(const float *x, float *out, int n) {
    extern __shared__ float part[];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = part[0];
}

__global__ void all_together(float *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += 2.0f;
    cooperative_groups::this_grid().sync();
}

__global__ void clustered(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] -= 1.0f;
}

__global__ void fault(int *nowhere) { *nowhere = 1; }

static const int N = 1 << 20;
static const size_t BYTES = N * sizeof(float);

static float total(const float *device, float *one, cudaStream_t stream) {
    float host = 0;
    sums<<<1, 256, 256 * sizeof(float), stream>>>(device, one, N);
    CHECK(cudaMemcpyAsync(&host, one, sizeof host, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    return host;
}

static double mix() {
    double check = 0;
    int device = 0;
    CHECK(cudaSetDevice(device));
    cudaStream_t streams[3];
    CHECK(cudaStreamCreate(&streams[0]));
    CHECK(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&streams[2], cudaStreamNonBlocking, -1));
    float *pageable = (float *)malloc(BYTES), *pinned, *a, *b, *one, *managed;
    CHECK(cudaMallocHost((void **)&pinned, BYTES));
    CHECK(cudaMalloc((void **)&a, BYTES));
    CHECK(cudaMalloc((void **)&b, BYTES));
    CHECK(cudaMalloc((void **)&one, sizeof(float)));
    CHECK(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
    for (int i = 0; i < N; i++) pageable[i] = pinned[i] = managed[i] = (float)(i % 7);

    CHECK(cudaMemcpy(a, pageable, BYTES, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(b, pinned, BYTES, cudaMemcpyHostToDevice, streams[1]));
    CHECK(cudaStreamSynchronize(streams[1]));
    // Each buffer has one stream at a time: results must not depend on who comes first.
    for (int round = 0; round < 100; round++) {
        scale<<<(N + 255) / 256, 256, 0, streams[(round / 10 + round % 2) % 3]>>>(round % 2 ? a : b, 0.5f, N);
        if (round % 10 == 9) CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaDeviceSynchronize());
    check += total(a, one, streams[0]) + total(b, one, streams[1]);
    CHECK(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, streams[2]));
    CHECK(cudaMemsetAsync(a, 0, BYTES, streams[2]));
    CHECK(cudaStreamSynchronize(streams[2]));
    CHECK(cudaMemset2D(b, 1024, 0, 512, 100));
    CHECK(cudaDeviceSynchronize());
    check += total(a, one, streams[2]) + total(b, one, 0);
    scale<<<(N + 255) / 256, 256>>>(managed, 3.0f, N);
    CHECK(cudaDeviceSynchronize());
    check += managed[12345];

    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreateWithFlags(&end, cudaEventDefault));
    CHECK(cudaEventRecord(begin, streams[0]));
    scale<<<64, 256, 0, streams[0]>>>(a, 2.0f, N);
    CHECK(cudaEventRecord(end, streams[0]));
    CHECK(cudaStreamWaitEvent(streams[1], end, 0));
    scale<<<64, 256, 0, streams[1]>>>(a, 2.0f, N);
    while (cudaEventQuery(end) == cudaErrorNotReady) {}
    CHECK(cudaStreamSynchronize(streams[1]));
    float took = 0;
    CHECK(cudaEventElapsedTime(&took, begin, end));
    check += took > 0;

    void *pooled;
    CHECK(cudaMallocAsync(&pooled, BYTES, streams[0]));
    CHECK(cudaMemsetAsync(pooled, 0, BYTES, streams[0]));
    scale<<<(N + 255) / 256, 256, 0, streams[0]>>>((float *)pooled, 1.0f, N);
    check += total((float *)pooled, one, streams[0]);
    CHECK(cudaFreeAsync(pooled, streams[0]));

    void *arguments[] = {&a, (void *)&N};
    int blocks = 16;
    CHECK(cudaLaunchCooperativeKernel((void *)all_together, dim3(blocks), dim3(128), arguments, 0, streams[0]));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((N + 255) / 256);
    config.blockDim = dim3(256);
    config.stream = streams[0];
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelExC(&config, (const void *)clustered, arguments));
    check += total(a, one, streams[0]);

    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(b, 0, BYTES, streams[0]));
    scale<<<(N + 255) / 256, 256, 0, streams[0]>>>(b, 1.0f, N);
    scale<<<(N + 255) / 256, 256, 0, streams[0]>>>(b, 1.5f, N);
    CHECK(cudaMemcpyAsync(a, b, BYTES, cudaMemcpyDeviceToDevice, streams[0]));
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = 0; i < 20; i++) CHECK(cudaGraphLaunch(ready, streams[i % 2]));
    CHECK(cudaDeviceSynchronize());
    check += total(a, one, streams[0]);
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));

    // An error that the program expects, and takes back.
    if (cudaMalloc((void **)&pooled, (size_t)1 << 50) != cudaSuccess) check += cudaGetLastError() == cudaErrorMemoryAllocation;
    for (int i = 0; i < 3; i++) CHECK(cudaStreamDestroy(streams[i]));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(one));
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(pinned));
    free(pageable);
    return check;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    float *x;
    if (!strcmp(what, "fault")) {
        fault<<<1, 1>>>((int *)16);
        printf("sync: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
        printf("malloc: %s\n", cudaGetErrorName(cudaMalloc((void **)&x, BYTES)));
        return 4;
    }
    if (!strcmp(what, "spin") || !strcmp(what, "exit")) {
        CHECK(cudaMalloc((void **)&x, BYTES));
        CHECK(cudaMemset(x, 0, BYTES));
        for (long i = 0; what[0] == 's' || i < 500; i++) {
            scale<<<(N + 255) / 256, 256>>>(x, 0.5f, N);
            if (what[0] == 's' && i % 100 == 99) {
                CHECK(cudaDeviceSynchronize());
                if (i == 999) printf("spinning %d\n", (int)getpid()), fflush(stdout);
                usleep(1000);
            }
        }
        fflush(stdout);
        _exit(5);
    }
    printf("checksum %.3f\n", mix());
    return 0;
}
