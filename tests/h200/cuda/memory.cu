// Managed memory that moves to a device and back, a kernel of clusters, and copies between two devices.
// Prints sums that can be compared; copies between devices only where there are two.
#include <cuda_runtime.h>
#include <stdio.h>
__global__ void add(int *p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 1; }
__global__ void __cluster_dims__(2, 1, 1) clustered(int *p) { if (threadIdx.x == 0) atomicAdd(p, 1); }
#define OK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s\n", #x, cudaGetErrorString(e)); return 1; } } while (0)
int main() {
    int n = 1 << 20, devices = 0, *m, *a, *b, *h;
    OK(cudaGetDeviceCount(&devices));
    OK(cudaMallocManaged(&m, n * 4));
    for (int i = 0; i < n; i++) m[i] = i;
    add<<<n / 256, 256>>>(m, n);
    OK(cudaDeviceSynchronize());
    long sum = 0;
    for (int i = 0; i < n; i++) sum += m[i];
    OK(cudaMalloc(&a, n * 4)); OK(cudaMemset(a, 0, n * 4));
    clustered<<<8, 32>>>(a);
    if (devices > 1) {
        OK(cudaSetDevice(1)); OK(cudaMalloc(&b, n * 4));
        OK(cudaMemcpyPeer(b, 1, a, 0, n * 4));
        int can = 0; OK(cudaDeviceCanAccessPeer(&can, 1, 0));
        if (can) { OK(cudaDeviceEnablePeerAccess(0, 0)); }
        OK(cudaMemcpyPeerAsync(b, 1, a, 0, n * 4, 0));
        OK(cudaMemcpy(b, a, n * 4, cudaMemcpyDefault));
        add<<<n / 256, 256>>>(b, n);
        OK(cudaDeviceSynchronize());
        OK(cudaMallocHost(&h, n * 4));
        OK(cudaMemcpy(h, b, n * 4, cudaMemcpyDeviceToHost));
        printf("first %d last %d ", h[0], h[n - 1]);
    }
    printf("sum %ld devices %d\n", sum, devices);
    return 0;
}
