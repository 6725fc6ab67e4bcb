// Kernels for `hetrace run --inside`: branches that lanes take apart, loops of different lengths, much shared memory, a graph,
// a cooperative launch. Prints sums that do not depend on how fast it runs. `inside trap` ends with a trap.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e != cudaSuccess) {                                                                    \
            printf("%s: %s\n", #call, cudaGetErrorString(e));                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

extern "C" __global__ void parts(unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = i;
    int steps = 0;
    while (x != 1 && x != 0 && steps < 500) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        steps++;
    }
    out[i] = steps;
}

extern "C" __global__ void shared(unsigned *out, int n)
{
    extern __shared__ unsigned room[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        room[i] = i * blockIdx.x;
    __syncthreads();
    unsigned sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += room[n - 1 - i];
    atomicAdd(out, sum);
}

extern "C" __global__ void together(unsigned *out)
{
    auto grid = cooperative_groups::this_grid();
    if (threadIdx.x == 0)
        atomicAdd(out, 1);
    grid.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        out[1] = out[0];
}

extern "C" __global__ void ends(unsigned *out, int n)
{
    for (int i = 0; i < n; i++)
        out[threadIdx.x] += i;
    if (threadIdx.x == 17)
        __trap();
}

int main(int argc, char **argv)
{
    const int n = 1 << 18, room = 20000;
    unsigned *out, *sums;
    OK(cudaMalloc(&out, n * sizeof *out));
    OK(cudaMalloc(&sums, 1024));
    OK(cudaMemset(sums, 0, 1024));
    if (argc > 1 && !strcmp(argv[1], "trap")) {
        ends<<<1, 32>>>(out, 100);
        printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    OK(cudaFuncSetAttribute(shared, cudaFuncAttributeMaxDynamicSharedMemorySize, room * 4));
    cudaEvent_t a, b;
    OK(cudaEventCreate(&a));
    OK(cudaEventCreate(&b));
    OK(cudaEventRecord(a));
    for (int i = 0; i < 20; i++)
        parts<<<n / 256, 256>>>(out, n - 100);
    OK(cudaEventRecord(b));
    for (int i = 0; i < 4; i++)
        shared<<<64, 256, room * 4>>>(sums + 8, room);
    void *arguments[] = {&sums};
    OK(cudaLaunchCooperativeKernel((void *)together, 64, 64, arguments, 0, 0));
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t x;
    OK(cudaStreamCreate(&s));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    parts<<<4, 256, 0, s>>>(out, 1000);
    OK(cudaStreamEndCapture(s, &g));
    OK(cudaGraphInstantiate(&x, g, 0));
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(x, s));
    OK(cudaDeviceSynchronize());
    unsigned *host = (unsigned *)malloc(n * sizeof *host), some[16];
    OK(cudaMemcpy(host, out, n * sizeof *host, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(some, sums, sizeof some, cudaMemcpyDeviceToHost));
    unsigned long long sum = 0;
    for (int i = 0; i < n - 100; i++)
        sum += host[i];
    float ms;
    OK(cudaEventElapsedTime(&ms, a, b));
    printf("%llu %u %u %u\n", sum, some[0], some[1], some[8]);
    fprintf(stderr, "parts: %.3f ms\n", ms / 20);
    return 0;
}
