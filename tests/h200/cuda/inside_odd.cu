// What a program may do with kernels that is not ordinary, a case for each name: `inside_odd CASE`. Each prints numbers that do not
// depend on how fast it runs nor on how lanes are scheduled, so a run with twins has to print the same. Built with -lcuda, and
// with -rdc=true -lcudadevrt -DLINKED for launches from the device and graphs with conditions, whose code has no PTX once it is linked.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <thread>
#include <vector>

namespace cg = cooperative_groups;
typedef unsigned u32;
typedef unsigned long long u64;

#define OK(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e != cudaSuccess) {                                                                    \
            printf("%d %s: %s\n", __LINE__, #call, cudaGetErrorString(e));                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define DRIVER(call)                                                                               \
    do {                                                                                           \
        CUresult e = (call);                                                                       \
        if (e != CUDA_SUCCESS) {                                                                   \
            printf("%d %s: %d\n", __LINE__, #call, (int)e);                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static u32 *out;
static const int N = 1 << 16;

// A sum that depends on the order of the words.
static u64 sum(int n = N)
{
    std::vector<u32> host(n);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(host.data(), out, n * sizeof(u32), cudaMemcpyDeviceToHost));
    u64 all = 1469598103934665603ull;
    for (u32 word : host)
        all = (all ^ word) * 1099511628211ull;
    return all;
}

__device__ int at() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Functions: not inlined, recursive, by address, virtual.
__device__ __noinline__ u32 steps(u32 x)
{
    u32 n = 0;
    while (x > 1 && n < 300) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        n++;
    }
    return n;
}
__device__ __noinline__ u32 deep(u32 n) { return n < 2 ? n : deep(n - 1) + deep(n - 2) % 7; }
__device__ __noinline__ u32 twice(u32 x) { return 2 * x + 1; }
__device__ __noinline__ u32 thrice(u32 x) { return x % 5 ? 3 * x : x; }
typedef u32 (*Way)(u32);
__device__ Way ways[2] = {twice, thrice};
struct Shape {
    __device__ virtual u32 area(u32 x) = 0;
};
struct Square : Shape {
    __device__ u32 area(u32 x) override { return x * x; }
};
struct Strip : Shape {
    __device__ u32 area(u32 x) override { return x > 9 ? 9 * x : x; }
};
__global__ void functions(u32 *out)
{
    int i = at();
    Square square;
    Strip strip;
    Shape *shape = i % 3 ? (Shape *)&square : (Shape *)&strip;
    out[i] = steps(i) + deep(i % 12) + ways[i % 2](i) + shape->area(i % 100);
}

// Warps that work on different things, with named barriers between them.
__global__ void specialised(u32 *out)
{
    __shared__ u32 room[2][128];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 sum = 0;
    for (int round = 0; round < 20; round++) {
        int half = round & 1;
        if (warp < 4) {
            room[half][threadIdx.x] = round * threadIdx.x + blockIdx.x;
            asm volatile("bar.arrive %0, 256;" ::"r"(1 + half) : "memory");
            asm volatile("bar.sync %0, 256;" ::"r"(3 + half) : "memory");
        } else {
            asm volatile("bar.sync %0, 256;" ::"r"(1 + half) : "memory");
            sum += room[half][(threadIdx.x - 128 + round) % 128];
            asm volatile("bar.arrive %0, 256;" ::"r"(3 + half) : "memory");
        }
    }
    out[at()] = sum + lane;
}

// A lock between lanes of a warp: ends only if each lane goes on by itself.
__global__ void locked(u32 *out, u32 *lock)
{
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            out[0] += threadIdx.x + blockIdx.x;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// Masks of parts of a warp.
__global__ void masks(u32 *out)
{
    int i = at();
    u32 word = i * 2654435761u, mask = __match_any_sync(~0u, word >> 29);
    u32 same = __popc(mask), first = __shfl_sync(mask, word, __ffs(mask) - 1);
    u32 odd = 0;
    if (threadIdx.x & 1) {
        odd = __ballot_sync(0xaaaaaaaau, word & 64);
        __syncwarp(0xaaaaaaaau);
        odd += __reduce_add_sync(0xaaaaaaaau, i);
    }
    auto group = cg::coalesced_threads();
    out[i] = same + first + odd + group.size() + __any_sync(~0u, word & 1 << 20);
}

// A switch of many cases, labels in inline PTX, an early end.
__global__ void cases(u32 *out)
{
    int i = at();
    u32 x = i, y = 0;
    if (i % 97 == 5) {
        out[i] = 5;
        return;
    }
#pragma unroll 1
    for (int n = 0; n < 9; n++) {
        switch ((x + n) % 11) {
        case 0: y += 3; break;
        case 1: y ^= x; break;
        case 2: y = y * 5 + 1; // on purpose
        case 3: y += n; break;
        case 4: x /= 2; break;
        case 5: x += 7; break;
        case 6: if (y & 1) continue; y += 11; break;
        case 7: y = __brev(y); break;
        case 8: if (y % 13 == 0) goto end; y--; break;
        default: y += x;
        }
        x++;
    }
end:
    asm volatile("{\n .reg .pred p;\n .reg .u32 t;\n setp.gt.u32 p, %1, 1000;\n mov.u32 t, 3;\n @p bra here;\n mov.u32 t, 4;\nhere:\n add.u32 %0, %0, t;\n}" : "+r"(y) : "r"(x));
    out[i] = y;
    if (i % 3 == 0)
        asm volatile("exit;");
    out[i] += 1;
}

// All of a constant bank, variables of the device, managed ones.
__constant__ u32 table[16380];
__device__ u32 counter;
__managed__ u32 shared_by_both;
__global__ void constants(u32 *out)
{
    int i = at();
    u32 x = table[i % 16380];
    if (x & 1)
        x += counter;
    out[i] = x + shared_by_both;
    if (i == 0)
        shared_by_both = 77;
}

// As many registers and threads as there can be.
__global__ void __launch_bounds__(1024, 1) wide(u32 *out)
{
    u32 x[40];
    int i = at();
#pragma unroll
    for (int n = 0; n < 40; n++)
        x[n] = out[(i + n * 911) % N];
#pragma unroll
    for (int n = 0; n < 40; n++)
        if (x[n] % 3 == 0)
            x[(n * 7 + 1) % 40] += x[n];
    u32 sum = 0;
#pragma unroll
    for (int n = 0; n < 40; n++)
        sum = sum * 31 + x[n];
    __syncthreads();
    if (i % 2 == 0)
        out[N + i] = sum;
}

// All blocks that fit, at a time.
__global__ void __launch_bounds__(256) together(u32 *out)
{
    auto grid = cg::this_grid();
    u32 x = at();
    for (int n = 0; n < 5; n++) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        if (threadIdx.x == 0)
            atomicAdd(out + n, blockIdx.x + 1);
        grid.sync();
        x += out[n];
    }
    if (threadIdx.x == 0)
        atomicAdd(out + 5, x % 1000 ? 1 : 1);
}

// A cluster, with memory of the others.
__global__ void __cluster_dims__(4, 1, 1) clustered(u32 *out)
{
    __shared__ u32 mine[64];
    auto cluster = cg::this_cluster();
    mine[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
    cluster.sync();
    u32 sum = 0;
    for (u32 rank = 0; rank < cluster.num_blocks(); rank++)
        if ((rank + threadIdx.x) % 3)
            sum += cluster.map_shared_rank(mine, rank)[threadIdx.x];
    cluster.sync();
    out[at()] = sum;
}

#ifdef LINKED
// Launches from the device.
__global__ void child(u32 *out, u32 base)
{
    u32 i = at();
    out[base + i] = i % 2 ? steps(i + base) : base;
}
__global__ void parent(u32 *out)
{
    if (threadIdx.x % 8 == 0)
        child<<<2, 32>>>(out, (blockIdx.x * 8 + threadIdx.x / 8) * 64);
}

#endif

// Much dynamic shared memory, halves, tensor cores, a cast of everything.
__global__ void products(u32 *out)
{
    extern __shared__ __half halves[];
    for (int i = threadIdx.x; i < 60000; i += blockDim.x)
        halves[i] = __float2half((float)(i % 7) - 3);
    __syncthreads();
    u32 a[4] = {0x3c003c00u, 0x40003c00u, 0x3c004000u, 0x44003c00u}, b[2] = {0x3c003c00u + threadIdx.x % 2, 0x40004000u};
    float c[4] = {0, 1, 2, 3};
    for (int n = 0; n < 8; n++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float sum = 0;
    for (int i = threadIdx.x; i < 60000; i += blockDim.x)
        if (__half2float(halves[i]) > 0)
            sum += __half2float(halves[59999 - i]);
    out[at()] = (u32)(int)(sum + c[0] + c[1] * 2 + c[2] + c[3]);
}

__global__ void textured(u32 *out, cudaTextureObject_t texture, cudaSurfaceObject_t surface)
{
    int i = at(), x = i % 64, y = i / 64 % 64;
    u32 texel = tex2D<u32>(texture, x, y);
    if (texel & 1)
        surf2Dwrite(texel + 1, surface, x * 4, y);
    out[i] = texel;
}

__global__ void says(u32 *out)
{
    int i = at();
    if (i % 4096 == 7)
        printf("lane %d of block %d\n", threadIdx.x, blockIdx.x);
    out[i] = i;
}

__global__ void asserts(u32 *out)
{
    int i = at();
    out[i] = i;
    if (i == 100)
        asm volatile("trap;");
}

__global__ void waits(u32 *out, int n)
{
    int i = at();
    for (int k = 0; k < n + (i & 3); k++)
        out[i] = out[i] * 5 + k;
}

__global__ void empty() {}

template <int K> __global__ void many(u32 *out)
{
    int i = at();
    if (i % (K + 2) == 0)
        out[i] += K;
}
template <int K> static void launch_many()
{
    many<K><<<N / 256, 256>>>(out);
    if constexpr (K > 0)
        launch_many<K - 1>();
}

static void attributes(const char *name, const void *kernel)
{
    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, kernel));
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0));
    printf("%s: registers %d local %zu shared %zu const %zu threads %d version %d, blocks %d\n", name, a.numRegs, a.localSizeBytes,
           a.sharedSizeBytes, a.constSizeBytes, a.maxThreadsPerBlock, a.binaryVersion, blocks);
}

static const char *TEXT = ".version 7.8\n.target sm_90\n.address_size 64\n"
                          ".visible .global .align 4 .u32 where = 5;\n"
                          ".visible .entry first(.param .u64 p)\n{\n .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %d<4>;\n"
                          " ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 9; mov.u32 %r2, 1; @%p1 bra L;\n"
                          " mov.u32 %r2, 2;\nL: mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2; ld.global.u32 %r3, [where]; add.u32 %r2, %r2, %r3;\n"
                          " st.global.u32 [%d3], %r2; ret;\n}\n.visible .entry second()\n{\n ret;\n}\n";

static void modules()
{
    for (int round = 0; round < 3; round++) {
        CUmodule module, other;
        CUfunction first, none;
        CUdeviceptr where;
        size_t bytes;
        unsigned count = 0;
        DRIVER(cuModuleLoadData(&module, TEXT));
        DRIVER(cuModuleLoadData(&other, TEXT));
        DRIVER(cuModuleGetFunctionCount(&count, module));
        std::vector<CUfunction> all(count);
        DRIVER(cuModuleEnumerateFunctions(all.data(), count, module));
        printf("%u functions:", count);
        for (CUfunction one : all) {
            const char *name = "?";
            size_t offset = 0, size = 0;
            CUmodule of;
            DRIVER(cuFuncGetName(&name, one));
            DRIVER(cuFuncGetModule(&of, one));
            int params = 0;
            while (cuFuncGetParamInfo(one, params, &offset, &size) == CUDA_SUCCESS)
                params++;
            printf(" %s of %d with %d", name, of == module, params);
        }
        printf("\n%d", cuModuleGetFunction(&none, module, "third"));
        DRIVER(cuModuleGetFunction(&first, module, "first"));
        DRIVER(cuModuleGetGlobal(&where, &bytes, module, "where"));
        u32 seven = 7;
        DRIVER(cuMemcpyHtoD(where, &seven, 4));
        void *arguments[] = {&out};
        DRIVER(cuLaunchKernel(first, 1, 1, 1, 64, 1, 1, 0, 0, arguments, 0));
        size_t size = sizeof out;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &out, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
        DRIVER(cuModuleGetFunction(&first, other, "first"));
        printf(" %zu bytes, %llx", bytes, sum(64));
        DRIVER(cuLaunchKernel(first, 1, 1, 1, 64, 1, 1, 0, 0, 0, extra));
        printf(" %llx", sum(64));
        // Errors stay what they are.
        printf(" %d %d\n", cuLaunchKernel(first, 1, 1, 1, 4096, 1, 1, 0, 0, arguments, 0), cuLaunchKernel(first, 0, 1, 1, 64, 1, 1, 0, 0, arguments, 0));
        DRIVER(cuModuleUnload(module));
        DRIVER(cuModuleUnload(other));
        CUlibrary library;
        DRIVER(cuLibraryLoadData(&library, TEXT, 0, 0, 0, 0, 0, 0));
        DRIVER(cuLibraryGetKernelCount(&count, library));
        std::vector<CUkernel> kernels(count);
        DRIVER(cuLibraryEnumerateKernels(kernels.data(), count, library));
        printf("%u kernels:", count);
        for (CUkernel one : kernels) {
            const char *name = "?";
            DRIVER(cuKernelGetName(&name, one));
            printf(" %s", name);
        }
        printf("\n");
        DRIVER(cuLibraryUnload(library));
    }
}

// Two texts that are linked, of which one calls the other's function.
static void linking()
{
    static const char *other = ".version 7.8\n.target sm_90\n.address_size 64\n"
                               ".extern .func (.param .b32 r) less(.param .b32 x);\n"
                               ".visible .entry third(.param .u64 p)\n{\n .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .pred %q;\n"
                               " ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; setp.lt.u32 %q, %r1, 20; @%q bra L;\n"
                               " { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), less, (a); ld.param.b32 %r1, [b]; }\n"
                               "L: mov.u32 %r2, %tid.x; mul.wide.u32 %d2, %r2, 4; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r1; ret;\n}\n";
    static const char *less = ".version 7.8\n.target sm_90\n.address_size 64\n"
                              ".visible .func (.param .b32 r) less(.param .b32 x)\n{\n .reg .b32 %r<3>;\n ld.param.b32 %r1, [x]; sub.u32 %r2, %r1, 7;\n"
                              " st.param.b32 [r], %r2; ret;\n}\n";
    for (int round = 0; round < 2; round++) {
        CUlinkState link;
        CUmodule module;
        CUfunction third;
        void *cubin;
        size_t size;
        DRIVER(cuLinkCreate(0, 0, 0, &link));
        DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)other, strlen(other) + 1, "other", 0, 0, 0));
        DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)less, strlen(less) + 1, "less", 0, 0, 0));
        DRIVER(cuLinkComplete(link, &cubin, &size));
        DRIVER(cuModuleLoadData(&module, cubin));
        DRIVER(cuLinkDestroy(link));
        DRIVER(cuModuleGetFunction(&third, module, "third"));
        void *arguments[] = {&out};
        DRIVER(cuLaunchKernel(third, 1, 1, 1, 64, 1, 1, 0, 0, arguments, 0));
        printf("%llx\n", sum(64));
        DRIVER(cuModuleUnload(module));
    }
}

static void graphs()
{
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t x;
    OK(cudaStreamCreate(&s));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    for (int n = 0; n < 4; n++) {
        waits<<<64, 256, 0, s>>>(out, 10 + n);
        functions<<<64, 256, 0, s>>>(out + 16384);
    }
    OK(cudaStreamEndCapture(s, &g));
    OK(cudaGraphInstantiate(&x, g, 0));
    for (int n = 0; n < 5; n++)
        OK(cudaGraphLaunch(x, s));
    OK(cudaStreamSynchronize(s));
    printf("%llx\n", sum());
    // A node's parameters, read and changed.
    size_t count = 0;
    OK(cudaGraphGetNodes(g, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    OK(cudaGraphGetNodes(g, nodes.data(), &count));
    cudaKernelNodeParams params;
    int same = 0;
    for (auto node : nodes) {
        OK(cudaGraphKernelNodeGetParams(node, &params));
        same += params.func == (void *)waits;
        if (params.func == (void *)waits) {
            int more = 33;
            void *arguments[] = {&out, &more};
            params.kernelParams = arguments;
            params.gridDim = dim3(32);
            OK(cudaGraphExecKernelNodeSetParams(x, node, &params));
        }
    }
    OK(cudaGraphLaunch(x, s));
    OK(cudaStreamSynchronize(s));
    printf("%zu nodes, %d of one, %llx\n", count, same, sum());
    cudaGraph_t clone;
    OK(cudaGraphClone(&clone, g));
    cudaGraphExec_t y;
    OK(cudaGraphInstantiate(&y, clone, 0));
    OK(cudaGraphLaunch(y, s));
    OK(cudaStreamSynchronize(s));
    printf("%llx\n", sum());
}

#ifdef LINKED
__global__ void turns(u32 *out, cudaGraphConditionalHandle handle)
{
    u32 n = 0;
    if (threadIdx.x == 0) {
        n = ++out[0];
        cudaGraphSetConditional(handle, n < 7);
    }
    out[1 + threadIdx.x] += n;
}

static void conditional()
{
    cudaGraph_t g, body;
    cudaGraphExec_t x;
    cudaGraphNode_t node, inner;
    cudaGraphConditionalHandle handle;
    OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphConditionalHandleCreate(&handle, g, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
#if CUDART_VERSION >= 13000
    OK(cudaGraphAddNode(&node, g, nullptr, nullptr, 0, &params));
#else
    OK(cudaGraphAddNode(&node, g, nullptr, 0, &params));
#endif
    body = params.conditional.phGraph_out[0];
    cudaKernelNodeParams kernel = {};
    void *arguments[] = {&out, &handle};
    kernel.func = (void *)turns;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(64);
    kernel.kernelParams = arguments;
    OK(cudaGraphAddKernelNode(&inner, body, nullptr, 0, &kernel));
    OK(cudaGraphInstantiate(&x, g, 0));
    OK(cudaGraphLaunch(x, 0));
    OK(cudaDeviceSynchronize());
    printf("%llx\n", sum(100));
}

#endif

static void threads()
{
    std::vector<std::thread> all;
    for (int n = 0; n < 8; n++)
        all.emplace_back([n] {
            cudaStream_t s;
            OK(cudaStreamCreate(&s));
            for (int k = 0; k < 50; k++)
                waits<<<8, 256, 0, s>>>(out + 2048 * n, k);
            OK(cudaStreamSynchronize(s));
        });
    for (auto &one : all)
        one.join();
    printf("%llx\n", sum(16384));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    u32 *lock;
    OK(cudaMalloc(&out, 2 * N * sizeof(u32)));
    OK(cudaMemset(out, 0, 2 * N * sizeof(u32)));
    OK(cudaMalloc(&lock, 64));
    OK(cudaMemset(lock, 0, 64));
    auto is = [name](const char *other) { return !strcmp(name, other); };
    if (is("functions")) {
        OK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
        functions<<<N / 256, 256>>>(out);
    } else if (is("specialised"))
        specialised<<<N / 256, 256>>>(out);
    else if (is("locked"))
        locked<<<8, 64>>>(out, lock);
    else if (is("masks"))
        masks<<<N / 256, 256>>>(out);
    else if (is("cases"))
        cases<<<N / 256, 256>>>(out);
    else if (is("constants")) {
        std::vector<u32> host(16380);
        for (size_t i = 0; i < host.size(); i++)
            host[i] = i * 2654435761u >> 8;
        u32 three = 3;
        OK(cudaMemcpyToSymbol(table, host.data(), host.size() * 4));
        OK(cudaMemcpyToSymbol(counter, &three, 4));
        shared_by_both = 5;
        constants<<<N / 256, 256>>>(out);
        OK(cudaDeviceSynchronize());
        void *address;
        size_t bytes;
        OK(cudaGetSymbolSize(&bytes, table));
        OK(cudaGetSymbolAddress(&address, counter));
        printf("%u %zu %d\n", shared_by_both, bytes, address != nullptr);
        return 0;
    } else if (is("wide"))
        wide<<<N / 1024, 1024>>>(out);
    else if (is("together")) {
        int blocks = 0, device = 0;
        cudaDeviceProp properties;
        OK(cudaGetDeviceProperties(&properties, device));
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, together, 256, 0));
        void *arguments[] = {&out};
        // As many as there is room for, then more.
        OK(cudaLaunchCooperativeKernel((void *)together, blocks * properties.multiProcessorCount, 256, arguments, 0, 0));
        OK(cudaDeviceSynchronize());
        printf("%d too many: %s\n", blocks, cudaGetErrorName(cudaLaunchCooperativeKernel((void *)together, 100000, 256, arguments, 0, 0)));
        cudaGetLastError();
        OK(cudaMemset(out + 5, 0, 4));
    } else if (is("clustered")) {
        clustered<<<N / 64, 64>>>(out);
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(64);
        config.blockDim = dim3(64);
        OK(cudaLaunchKernelEx(&config, clustered, out));
#ifdef LINKED
    } else if (is("parent")) {
        parent<<<16, 64>>>(out);
    } else if (is("conditional")) {
        conditional();
#endif
    } else if (is("products")) {
        OK(cudaFuncSetAttribute(products, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
        products<<<N / 256, 256, 120000>>>(out);
    } else if (is("textured")) {
        cudaArray_t array;
        auto channel = cudaCreateChannelDesc<u32>();
        OK(cudaMallocArray(&array, &channel, 64, 64, cudaArraySurfaceLoadStore));
        std::vector<u32> host(64 * 64);
        for (size_t i = 0; i < host.size(); i++)
            host[i] = i * 7;
        OK(cudaMemcpy2DToArray(array, 0, 0, host.data(), 256, 256, 64, cudaMemcpyHostToDevice));
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
        cudaTextureDesc how = {};
        cudaTextureObject_t texture;
        cudaSurfaceObject_t surface;
        OK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
        OK(cudaCreateSurfaceObject(&surface, &resource));
        textured<<<16, 256>>>(out, texture, surface);
        OK(cudaDeviceSynchronize());
        OK(cudaMemcpy2DFromArray(host.data(), 256, array, 0, 0, 256, 64, cudaMemcpyDeviceToHost));
        u32 all = 0;
        for (u32 word : host)
            all = all * 31 + word;
        printf("%u\n", all);
    } else if (is("says"))
        says<<<N / 256, 256>>>(out);
    else if (is("asserts")) {
        asserts<<<N / 256, 256>>>(out);
        printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
        printf("%s\n", cudaGetErrorName(cudaMalloc(&lock, 64)));
        return 3;
    } else if (is("empty")) {
        for (int n = 0; n < 1000; n++)
            empty<<<1, 1>>>();
        empty<<<0, 1>>>();
        printf("%s\n", cudaGetErrorName(cudaGetLastError()));
        empty<<<1, 2000>>>();
        printf("%s\n", cudaGetErrorName(cudaGetLastError()));
        empty<<<1, 32, 1 << 20>>>();
        printf("%s\n", cudaGetErrorName(cudaGetLastError()));
        empty<<<dim3(3, 4, 5), dim3(2, 3, 4)>>>();
        waits<<<dim3(2, 1, 1), dim3(64, 1, 1)>>>(out, 5);
    } else if (is("many"))
        launch_many<120>();
    else if (is("attributes")) {
        attributes("functions", (void *)functions);
        attributes("cases", (void *)cases);
        attributes("wide", (void *)wide);
        attributes("waits", (void *)waits);
        waits<<<N / 256, 256>>>(out, 3);
        attributes("waits", (void *)waits);
    } else if (is("modules"))
        modules();
    else if (is("linking"))
        linking();
    else if (is("graphs"))
        graphs();
    else if (is("threads"))
        threads();
    else if (is("reset")) {
        waits<<<N / 256, 256>>>(out, 3);
        printf("%llx\n", sum());
        OK(cudaDeviceReset());
        OK(cudaMalloc(&out, 2 * N * sizeof(u32)));
        OK(cudaMemset(out, 0, 2 * N * sizeof(u32)));
        waits<<<N / 256, 256>>>(out, 4);
    } else {
        printf("no such case: %s\n", name);
        return 2;
    }
    cudaError_t left = cudaGetLastError();
    printf("%s %llx\n", cudaGetErrorName(left), sum(2 * N));
    return 0;
}
