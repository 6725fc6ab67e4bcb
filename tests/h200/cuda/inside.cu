// Kernels whose insides are recorded by tests/h200/inside.py: divergence, loops, early exits, shared memory, barriers, atomic
// operations. All write what depends on what each lane did, and on nothing else.
// nvcc -arch=compute_80 -ptx inside.cu

#define KERNEL extern "C" __global__ void
typedef unsigned int u32;

__device__ u32 next(u32 x) { return x * 1664525u + 1013904223u; }

// Each lane runs as often as its number in Collatz's sequence, and parts inside.
KERNEL collatz(u32* out, const u32* in, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 x = in[i] % 1000 + 1, steps = 0;
    while (x != 1) {
        if (x & 1) x = 3 * x + 1;
        else x >>= 1;
        steps += x ^ (steps << 1);
    }
    out[i] = steps;
}

// One multiplication and addition in each pass, all lanes alike: the dearest for what it does.
KERNEL fma_loop(u32* out, const u32* in, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = (float)(in[i % n] & 7), b = 0.5f;
    u32 passes = 1000 + (n & 1);
#pragma unroll 1
    for (u32 k = 0; k < passes; k++) b = b * 0.999f + a;
    out[i % n] = __float_as_uint(b);
}

// Some lanes of a warp end before a barrier that the others come to.
KERNEL early(u32* out, const u32* in, u32 n) {
    __shared__ u32 tile[256];
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i % n];
    __syncthreads();
    if (i % 32 == 5 || i >= n) return;
    u32 sum = 0;
    for (u32 k = 0; k < 4; k++) {
        __syncthreads();
        sum += tile[(threadIdx.x + k) % 256];
    }
    out[i] = sum;
}

// A sum by halves in shared memory, and then by shuffles.
KERNEL reduce(u32* out, const u32* in, u32 n) {
    __shared__ u32 tile[256];
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0;
    for (u32 half = blockDim.x / 2; half >= 32; half >>= 1) {
        __syncthreads();
        if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 sum = tile[threadIdx.x];
        for (u32 offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
        if (threadIdx.x == 0) out[blockIdx.x % n] = sum;
    }
}

KERNEL histogram(u32* out, const u32* in, u32 n) {
    __shared__ u32 bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (in[i] % 3 == 0) atomicAdd(&bins[in[i] % 64], 1);
        else if (in[i] % 5 == 0) atomicMax(&out[64 + in[i] % 64], i);
    }
    __syncthreads();
    if (threadIdx.x < 64 && bins[threadIdx.x]) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

KERNEL machine(u32* out, const u32* in, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 x = in[i], acc = 0;
    for (u32 k = 0; k < 40; k++) {
        x = next(x);
        switch ((x >> 20) & 7) {
        case 0: acc += x; break;
        case 1: acc ^= x; break;
        case 2: acc *= 3; break;
        case 3: if (acc & 1) continue; acc++; break;
        case 4: for (u32 j = 0; j < (x & 3); j++) acc += in[(x + j) % n]; break;
        case 5: acc = acc << 3 | acc >> 29; break;
        case 6: if (acc > 0xf0000000u) { out[i] = acc; return; } break;
        default: acc -= x;
        }
    }
    out[i] = acc;
}

// Loops in a loop that lanes leave apart, with two ways out.
KERNEL nested(u32* out, const u32* in, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 x = in[i], acc = 0;
    for (u32 k = 0; k < 20; k++) {
        u32 j = 0;
#pragma unroll 1
        for (; j < 30; j++) {
            x = next(x);
            if ((x >> 24) < 8) break;
            acc += x >> 3;
        }
        if (j < 10) acc ^= x;
    }
    out[i] = acc;
}

// Bounds are looked at in each pass; the lanes at the edges differ, and are the same in all of them.
KERNEL stencil(u32* out, const u32* in, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 column = i % 100, sum = 0;
#pragma unroll 1
    for (u32 row = 0; row < 64; row++) {
        u32 at = (row * 100 + column) % n;
        sum += in[at];
        if (column > 0) sum += in[(at + n - 1) % n] >> 1;
        if (column < 99) sum += in[(at + 1) % n] >> 2;
    }
    out[i] = sum;
}
