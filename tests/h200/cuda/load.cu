/* One kind of load, as fast as it goes, for about a second: programs whose price a tracer pays in different places.
 *
 *   load small | launches | loop | graph | threads | allocations | copies | long   [FACTOR]
 *
 * Writes how many kernels and copies it has launched, nodes of graphs included: COUNT kernels=N copies=N bytes=N, and
 * when it came how far, in ms of CLOCK_MONOTONIC: AT main=T init=T work=T end=T
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OK(call)                                                              \
    do {                                                                      \
        cudaError_t code = (call);                                            \
        if (code != cudaSuccess) {                                            \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(code));     \
            exit(98);                                                         \
        }                                                                     \
    } while (0)

__global__ void tiny(int *p) { p[threadIdx.x] += 1; }
__global__ void other(int *p) { p[threadIdx.x] += 2; }

__global__ void spin(int *p, long long cycles) {
    long long since = clock64();
    while (clock64() - since < cycles) {}
    p[threadIdx.x] += 1;
}

static long kernels, copies, bytes;
static double factor = 1;

static long times(long n) { return (long)(n * factor) > 0 ? (long)(n * factor) : 1; }

static void small(int *p) {
    for (int i = 0; i < 10; i++, kernels++) tiny<<<1, 32>>>(p);
}

/* Nothing but launches. */
static void launches(int *p) {
    for (long i = 0; i < times(200000); i++, kernels++)
        if (i % 3) tiny<<<1, 32>>>(p); else other<<<1, 32>>>(p);
}

/* What simulations do: a few kernels, a value back, and again. */
static void loop(int *p) {
    int host[32];
    for (long i = 0; i < times(20000); i++) {
        tiny<<<64, 128>>>(p);
        other<<<64, 128>>>(p);
        spin<<<1, 32>>>(p, 20000);
        kernels += 3;
        OK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
        copies++;
        bytes += sizeof host;
    }
}

static void graph(int *p) {
    enum { NODES = 302 };
    cudaStream_t stream;
    cudaGraph_t made;
    cudaGraphExec_t exec;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < NODES; i++) tiny<<<1, 32, 0, stream>>>(p);
    OK(cudaStreamEndCapture(stream, &made));
    OK(cudaGraphInstantiate(&exec, made, 0));
    for (long i = 0; i < times(2000); i++, kernels += NODES) OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
}

static int *shared;

static void *one_thread(void *) {
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 20; i++) tiny<<<1, 32, 0, stream>>>(shared);
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
    return NULL;
}

/* New threads all the time, which call a little. */
static void threads(int *p) {
    shared = p;
    for (long wave = 0; wave < times(50); wave++) {
        pthread_t all[10];
        for (pthread_t &thread : all) pthread_create(&thread, NULL, one_thread, NULL);
        for (pthread_t &thread : all) pthread_join(thread, NULL);
        kernels += 200;
    }
}

static void allocations(int *p) {
    for (long i = 0; i < times(30000); i++) {
        int *more;
        OK(cudaMallocAsync(&more, 4096, 0));
        tiny<<<1, 32>>>(more);
        OK(cudaFreeAsync(more, 0));
        kernels++;
    }
    tiny<<<1, 32>>>(p);
    kernels++;
}

static void small_copies(int *p) {
    char *host;
    OK(cudaMallocHost(&host, 1 << 16));
    for (long i = 0; i < times(50000); i++) {
        size_t n = 1024 << i % 4;
        OK(cudaMemcpyAsync(p, host, n, cudaMemcpyHostToDevice, 0));
        OK(cudaMemcpyAsync(host, p, n, cudaMemcpyDeviceToHost, 0));
        copies += 2;
        bytes += 2 * n;
        if (i % 64 == 0) OK(cudaDeviceSynchronize());
    }
}

static void long_kernels(int *p) {
    for (long i = 0; i < times(1000); i++, kernels++) spin<<<64, 128>>>(p, 1500000);
}

static double now_ms() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    double begun = now_ms();
    const char *what = argc > 1 ? argv[1] : "";
    if (argc > 2) factor = atof(argv[2]);
    struct { const char *name; void (*work)(int *); } const all[] = {
        {"small", small}, {"launches", launches}, {"loop", loop}, {"graph", graph}, {"threads", threads},
        {"allocations", allocations}, {"copies", small_copies}, {"long", long_kernels},
    };
    for (auto &one : all) {
        if (strcmp(one.name, what)) continue;
        int *p;
        OK(cudaMalloc(&p, 1 << 16));
        OK(cudaMemset(p, 0, 1 << 16));
        double init = now_ms();
        one.work(p);
        OK(cudaDeviceSynchronize());
        double work = now_ms();
        OK(cudaFree(p));
        printf("AT main=%f init=%f work=%f end=%f\n", begun, init, work, now_ms());
        printf("COUNT kernels=%ld copies=%ld bytes=%ld\n", kernels, copies, bytes);
        return 0;
    }
    fprintf(stderr, "what load? see the head of load.cu\n");
    return 97;
}
