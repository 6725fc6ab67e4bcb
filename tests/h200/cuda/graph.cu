/* Launches a graph of 300 nodes 12,000 times: what its nodes take is known, so that a tracer's times can be compared.
 *
 *   graph chain | fork | set | update   [FACTOR]
 *
 * `chain` has one node after the other, `fork` four chains beside each other, `set` changes a kernel's node in the executable at
 * each tenth launch, `update` makes the executable another graph's at each tenth. Writes what each launch took, what was
 * computed, and how many kernels, copies, fills and bytes there were.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda_runtime.h>
#include <vector>

#define OK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

enum { NODES = 300, BRANCHES = 4, CELLS = 1 << 12 };

__global__ void tiny(int *p, int by) { if (threadIdx.x == 0) atomicAdd(p, by); }
__device__ static void spin(long ns) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < ns);
}
__global__ void spin10(int *p) { spin(10000); atomicAdd(p, 3); }
__global__ void spin50(int *p) { spin(50000); atomicAdd(p, 5); }

static int *cells, *buffer, host[64];
static long kernels, copies, fills, bytes, per_kernels, per_copies, per_fills;

static double now_us() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void node(int i, cudaStream_t s, int by) {
    if (i % 100 == 99) {
        OK(cudaMemsetAsync(buffer, 1, 4096, s));
        per_fills++;
    } else if (i % 100 == 98) {
        OK(cudaMemcpyAsync(buffer, cells, 256, cudaMemcpyDeviceToDevice, s));
        per_copies++;
    } else {
        if (i % 60 == 30) spin50<<<1, 1, 0, s>>>(cells);
        else if (i % 30 == 10) spin10<<<1, 1, 0, s>>>(cells);
        else tiny<<<1, 32, 0, s>>>(cells, by);
        per_kernels++;
    }
}

static cudaGraph_t capture(bool forks, int by) {
    cudaStream_t s[BRANCHES];
    cudaEvent_t fork, join[BRANCHES];
    cudaGraph_t made;
    per_kernels = per_copies = per_fills = 0;
    for (auto &one : s) OK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    for (auto &one : join) OK(cudaEventCreateWithFlags(&one, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal));
    if (forks) {
        OK(cudaEventRecord(fork, s[0]));
        for (int i = 1; i < BRANCHES; i++) OK(cudaStreamWaitEvent(s[i], fork, 0));
    }
    for (int i = 0; i < NODES; i++) node(i, s[forks ? i % BRANCHES : 0], by);
    for (int i = 1; forks && i < BRANCHES; i++) {
        OK(cudaEventRecord(join[i], s[i]));
        OK(cudaStreamWaitEvent(s[0], join[i], 0));
    }
    OK(cudaStreamEndCapture(s[0], &made));
    return made;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long launches = argc > 2 ? (long)(12000 * atof(argv[2])) : 12000;
    bool forks = !strcmp(what, "fork"), sets = !strcmp(what, "set"), updates = !strcmp(what, "update");
    if (!forks && !sets && !updates && strcmp(what, "chain")) return 97;
    OK(cudaMalloc(&cells, CELLS * sizeof *cells));
    OK(cudaMemset(cells, 0, CELLS * sizeof *cells));
    OK(cudaMalloc(&buffer, CELLS * sizeof *buffer));
    fills++, bytes += CELLS * sizeof *cells;
    cudaGraph_t one = capture(forks, 1), other = capture(forks, 2);
    cudaGraphExec_t x;
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    OK(cudaGraphInstantiate(&x, one, 0));
    size_t count = NODES + 64;
    std::vector<cudaGraphNode_t> nodes(count);
    OK(cudaGraphGetNodes(one, nodes.data(), &count));
    int by = 7;
    void *arguments[] = {&cells, &by};
    cudaKernelNodeParams params = {};
    params.func = (void *)tiny;
    params.gridDim = dim3(1), params.blockDim = dim3(32), params.kernelParams = arguments;
    cudaGraphNode_t first = nullptr;
    for (size_t i = 0; i < count && !first; i++) {
        cudaGraphNodeType type;
        cudaKernelNodeParams has;
        OK(cudaGraphNodeGetType(nodes[i], &type));
        if (type == cudaGraphNodeTypeKernel && cudaGraphKernelNodeGetParams(nodes[i], &has) == cudaSuccess && has.func == (void *)tiny)
            first = nodes[i];
    }
    std::vector<double> took;
    double begin = now_us();
    for (long i = 0; i < launches; i++) {
        if (sets && i % 10 == 9) {
            by = 7 + i % 3;
            OK(cudaGraphExecKernelNodeSetParams(x, first, &params));
        }
        if (updates && i % 10 == 9) {
            cudaGraphExecUpdateResultInfo info;
            OK(cudaGraphExecUpdate(x, i % 20 < 10 ? other : one, &info));
        }
        double before = now_us();
        OK(cudaGraphLaunch(x, stream));
        if (i % 10 == 9) OK(cudaStreamSynchronize(stream));
        took.push_back(now_us() - before);
        kernels += per_kernels, copies += per_copies, fills += per_fills;
        bytes += per_copies * 256 + per_fills * 4096;
    }
    OK(cudaStreamSynchronize(stream));
    double all = now_us() - begin;
    OK(cudaMemcpy(host, cells, sizeof host, cudaMemcpyDeviceToHost));
    copies++, bytes += sizeof host;
    OK(cudaGraphExecDestroy(x));
    OK(cudaGraphDestroy(one));
    OK(cudaGraphDestroy(other));
    std::sort(took.begin(), took.end());
    printf("step %.3f\n", all / launches);
    printf("RESULT %d\n", host[0]);
    printf("COUNT kernels=%ld copies=%ld fills=%ld bytes=%ld\n", kernels, copies, fills, bytes);
    return 0;
}
