/* Stands for HIP's library where there is no device: memory is the host's, a kernel is a function of the host, which runs
 * at once, and what is not here does nothing and returns 0 (defaults.c, made of the model).
 *
 * Each stream has a time line of its own, in which commands last as long as the program can know: they begin when those
 * before have ended, and events with times are complete when theirs has come. fake_say_ran says what was in them. An event
 * without times is ready when it was asked for as often as FAKE_HIP_POLLS says (5). With FAKE_HIP_OLD each call is the
 * thread's last error, as in versions before 6.
 *
 * If the fake rocprofiler-sdk is in the process, it gets what the device did: as much as the real one would, which is two
 * copies for one that is large, a kernel for each of a graph and for a fill. */
#include "hip.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))

/* Kernels that run in a stream, or are captured into a graph. */
typedef void (*Kernel)(void **args);
struct step {
    Kernel kernel;
    void **args;
};
struct ihipGraph {
    struct step steps[16];
    int count;
};
struct hipGraphExec {
    struct ihipGraph graph;
};
struct ihipStream_t {
    struct ihipGraph *capturing;
    /* Until when it has something to do, in nanoseconds of the host. */
    uint64_t until;
};
struct ihipEvent_t {
    int polls, has_times;
    uint64_t time;
};
struct ihipModule_t {
    char unused;
};
/* A kernel of a module: the function of the program with this name. */
struct ihipModuleSymbol_t {
    Kernel kernel;
};

static __thread hipError_t last;
static __thread struct {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
} configuration;

static hipError_t said(hipError_t error) {
    if (getenv("FAKE_HIP_OLD"))
        last = error;
    if (error != hipSuccess && error != hipErrorNotReady)
        last = error;
    return error;
}

/* ---- Time lines */

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct ihipStream_t legacy;
static __thread struct ihipStream_t per_thread;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { const char *kind; char name[64], stream; uint64_t start, end; } ran[4096];
static int commands;

static struct ihipStream_t *line_of(hipStream_t stream) {
    if (stream == NULL || (uintptr_t)stream == 1)
        return &legacy;
    return (uintptr_t)stream == 2 ? &per_thread : stream;
}

/* What a command was on the device, for a collector: so many kernels or copies, one after the other. */
static void collected(int is_copy, uint64_t start, uint64_t end, size_t bytes, unsigned parts) {
    static void (*ran_on_device)(int, uint64_t, uint64_t, size_t);
    void *library = dlopen("librocprofiler-sdk.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library && !ran_on_device)
        *(void **)&ran_on_device = dlsym(library, "fake_rocprofiler_ran");
    for (unsigned i = 0; library && i < parts; i++) {
        uint64_t part = (end - start) / parts;
        ran_on_device(is_copy, start + i * part, i + 1 == parts ? end : start + (i + 1) * part, bytes / parts);
    }
}

/* A command at the end of a stream: of so many bytes, or of so many kernels. */
static void runs(const char *kind, const char *name, hipStream_t stream, uint64_t duration, size_t amount) {
    struct ihipStream_t *line = line_of(stream);
    pthread_mutex_lock(&mutex);
    uint64_t start = now();
    if (line->until > start)
        start = line->until;
    line->until = start + duration;
    if (commands < 4096) {
        ran[commands].kind = kind;
        ran[commands].stream = line == &legacy ? 'l' : line == &per_thread ? 'p' : 's';
        snprintf(ran[commands].name, sizeof ran[commands].name, "%s", name && *name ? name : "-");
        ran[commands].start = start;
        ran[commands++].end = line->until;
    }
    uint64_t end = line->until;
    pthread_mutex_unlock(&mutex);
    int is_copy = *kind != 'k' && *kind != 'f' && *kind != 'g';
    collected(is_copy, start, end, is_copy ? amount : 0, *kind == 'g' ? (unsigned)amount : is_copy && amount > 4000 ? 2 : 1);
}

static void wait_until(uint64_t time) {
    while (now() < time)
        nanosleep(&(struct timespec){0, 20000}, NULL);
}

API void fake_say_ran(void) {
    for (int i = 0; i < commands; i++)
        printf("RAN kind=%s name=%s stream=%c start=%lu end=%lu\n", ran[i].kind, ran[i].name, ran[i].stream,
               ran[i].start, ran[i].end);
}

API hipError_t hipInit(unsigned int flags) {
    return said(flags == 0 ? hipSuccess : hipErrorInvalidValue);
}

API hipError_t hipRuntimeGetVersion(int *version) {
    *version = 60400000;
    return said(hipSuccess);
}

API hipError_t hipGetDeviceCount(int *count) {
    *count = 1;
    return said(hipSuccess);
}

API hipError_t hipSetDevice(int deviceId) {
    return said(deviceId == 0 ? hipSuccess : hipErrorInvalidDevice);
}

API hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *prop, int deviceId) {
    memset(prop, 0, sizeof *prop);
    strcpy(prop->name, "a fake of gfx90a");
    return said(deviceId == 0 ? hipSuccess : hipErrorInvalidDevice);
}

API const char *hipGetErrorName(hipError_t error) {
    switch (error) {
    case hipSuccess: return "hipSuccess";
    case hipErrorInvalidValue: return "hipErrorInvalidValue";
    case hipErrorInvalidMemcpyDirection: return "hipErrorInvalidMemcpyDirection";
    case hipErrorInvalidDevice: return "hipErrorInvalidDevice";
    case hipErrorNotFound: return "hipErrorNotFound";
    case hipErrorNotReady: return "hipErrorNotReady";
    default: return "hipErrorUnknown";
    }
}

API const char *hipGetErrorString(hipError_t error) {
    switch (error) {
    case hipErrorInvalidValue: return "invalid argument";
    case hipErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case hipErrorInvalidDevice: return "invalid device ordinal";
    case hipErrorNotFound: return "named symbol not found";
    case hipErrorNotReady: return "device not ready";
    default: return "unknown error";
    }
}

API hipError_t hipPeekAtLastError(void) {
    return last;
}

API hipError_t hipDeviceGetName(char *name, int length, int device) {
    (void)device;
    snprintf(name, (size_t)length, "a fake of gfx90a");
    return said(hipSuccess);
}

API hipError_t hipGetLastError(void) {
    hipError_t error = last;
    last = hipSuccess;
    return error;
}

/* In defaults.c: the library's own function, whoever stands before it. */
void *fake_find(const char *name);

API hipError_t hipGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags, int *status) {
    (void)version;
    (void)flags;
    *pfn = fake_find(symbol);
    if (status)
        *status = *pfn ? 0 : 1;
    return said(*pfn ? hipSuccess : hipErrorNotFound);
}

/* ---- Memory */

API hipError_t hipMalloc(void **ptr, size_t size) {
    *ptr = calloc(1, size ? size : 1);
    return said(*ptr ? hipSuccess : 2);
}

API hipError_t hipFree(void *ptr) {
    /* No address of ours is odd. */
    if ((uintptr_t)ptr & 1)
        return said(hipErrorInvalidValue);
    free(ptr);
    return said(hipSuccess);
}

API hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags) {
    (void)flags;
    return hipMalloc(ptr, size);
}

API hipError_t hipHostFree(void *ptr) {
    free(ptr);
    return said(hipSuccess);
}

API hipError_t hipMallocArray(hipArray_t *array, const hipChannelFormatDesc *desc, size_t width, size_t height,
                              unsigned int flags) {
    (void)flags;
    return hipMalloc((void **)array, width * height * (size_t)(desc->x + desc->y + desc->z + desc->w) / 8);
}

API hipError_t hipFreeArray(hipArray_t array) {
    free(array);
    return said(hipSuccess);
}

static const char *direction(int kind) {
    return kind == hipMemcpyHostToDevice ? "write" : kind == hipMemcpyDeviceToHost ? "read" : "copy";
}

API hipError_t hipMemcpy(void *dst, const void *src, size_t sizeBytes, int kind) {
    if (kind < 0 || kind > 4)
        return said(hipErrorInvalidMemcpyDirection);
    memcpy(dst, src, sizeBytes);
    runs(direction(kind), NULL, NULL, 5000 + sizeBytes, sizeBytes);
    wait_until(legacy.until);
    return said(hipSuccess);
}

API hipError_t hipMemcpyAsync(void *dst, const void *src, size_t sizeBytes, int kind, hipStream_t stream) {
    if (kind < 0 || kind > 4)
        return said(hipErrorInvalidMemcpyDirection);
    memcpy(dst, src, sizeBytes);
    runs(direction(kind), NULL, stream, 20000 + sizeBytes, sizeBytes);
    return said(hipSuccess);
}

API hipError_t hipMemcpyDtoH(void *dst, void *src, size_t sizeBytes) {
    memcpy(dst, src, sizeBytes);
    runs("read", NULL, NULL, 6000 + sizeBytes, sizeBytes);
    wait_until(legacy.until);
    return said(hipSuccess);
}

API hipError_t hipMemset(void *dst, int value, size_t sizeBytes) {
    memset(dst, value, sizeBytes);
    runs("fill", NULL, NULL, 30000 + sizeBytes, sizeBytes);
    return said(hipSuccess);
}

API hipError_t hipMemsetD32Async(void *dst, int value, size_t words, hipStream_t stream) {
    for (size_t i = 0; i < words; i++)
        ((int *)dst)[i] = value;
    runs("fill", NULL, stream, 40000 + 4 * words, 4 * words);
    return said(hipSuccess);
}

/* ---- Streams and events */

API hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags) {
    (void)flags;
    return hipMalloc((void **)stream, sizeof **stream);
}

API hipError_t hipStreamSynchronize(hipStream_t stream) {
    wait_until(line_of(stream)->until);
    return said(hipSuccess);
}

API hipError_t hipStreamSynchronize_spt(hipStream_t stream) {
    return hipStreamSynchronize(stream ? stream : (hipStream_t)2);
}

API hipError_t hipStreamIsCapturing(hipStream_t stream, int *status) {
    *status = line_of(stream)->capturing != NULL;
    return said(hipSuccess);
}

API hipError_t hipDeviceSynchronize(void) {
    uint64_t until = 0;
    for (int i = 0; i < commands; i++)
        until = ran[i].end > until ? ran[i].end : until;
    wait_until(until);
    return said(hipSuccess);
}

API hipError_t hipStreamDestroy(hipStream_t stream) {
    free(stream);
    return said(hipSuccess);
}

API hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags) {
    hipError_t error = hipMalloc((void **)event, sizeof **event);
    (*event)->has_times = (flags & 2) == 0;
    return error;
}

API hipError_t hipEventDestroy(hipEvent_t event) {
    free(event);
    return said(hipSuccess);
}

API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    event->polls = getenv("FAKE_HIP_POLLS") ? atoi(getenv("FAKE_HIP_POLLS")) : 5;
    struct ihipStream_t *line = line_of(stream);
    if (line->capturing)
        return said(hipErrorInvalidValue);
    uint64_t time = now();
    event->time = line->until > time ? line->until : time;
    return said(hipSuccess);
}

API hipError_t hipEventQuery(hipEvent_t event) {
    int ready = event->has_times ? now() >= event->time : event->polls-- <= 0;
    return said(ready ? hipSuccess : hipErrorNotReady);
}

API hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop) {
    *ms = 1.5f;
    if (start->has_times && stop->has_times)
        *ms = (float)((double)(int64_t)(stop->time - start->time) / 1e6);
    return said(hipSuccess);
}

/* ---- Kernels */

/* Names of functions that stand for kernels. */
static struct { const void *host; char name[64]; } registered[64];
static int registrations;

static const char *name_of(Kernel kernel) {
    for (int i = 0; i < registrations; i++)
        if (registered[i].host == (const void *)(uintptr_t)kernel)
            return registered[i].name;
    Dl_info info;
    return dladdr((void *)(uintptr_t)kernel, &info) && info.dli_sname ? info.dli_sname : "";
}

static hipError_t launch(hipStream_t stream, Kernel kernel, void **args, unsigned groups) {
    struct ihipGraph *graph = line_of(stream)->capturing;
    if (graph) {
        graph->steps[graph->count++] = (struct step){kernel, args};
        return said(hipSuccess);
    }
    kernel(args);
    runs("kernel", name_of(kernel), stream, 50000 + 10000ul * groups, 1);
    return said(hipSuccess);
}

API void __hipRegisterFunction(void **modules, const void *host, char *function, const char *name, unsigned limit,
                               void *tid, void *bid, dim3 *block, dim3 *grid, int *size) {
    (void)modules, (void)function, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    registered[registrations].host = host;
    snprintf(registered[registrations++].name, 64, "%s", name);
}

API void **__hipRegisterFatBinary(const void *data) {
    static void *modules[1];
    modules[0] = (void *)data;
    return modules;
}

API hipError_t __hipPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, hipStream_t stream) {
    configuration.grid = gridDim;
    configuration.block = blockDim;
    configuration.shared = sharedMem;
    configuration.stream = stream;
    return hipSuccess;
}

API hipError_t __hipPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, hipStream_t *stream) {
    *gridDim = configuration.grid;
    *blockDim = configuration.block;
    *sharedMem = configuration.shared;
    *stream = configuration.stream;
    return hipSuccess;
}

API hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                               hipStream_t stream) {
    (void)shared;
    if (grid.x == 0 || block.x == 0)
        return said(hipErrorInvalidValue);
    return launch(stream, (Kernel)(uintptr_t)function, args, grid.x * grid.y * grid.z);
}

API hipError_t hipLaunchKernel_spt(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                                   hipStream_t stream) {
    return hipLaunchKernel(function, grid, block, args, shared, stream ? stream : (hipStream_t)2);
}

API hipError_t hipLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args, unsigned shared,
                                          hipStream_t stream) {
    return hipLaunchKernel(function, grid, block, args, shared, stream);
}

API hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
    if (memcmp(image, "\177ELF", 4) != 0)
        return said(hipErrorInvalidImage);
    return hipMalloc((void **)module, sizeof **module);
}

API hipError_t hipModuleUnload(hipModule_t module) {
    free(module);
    return said(hipSuccess);
}

API hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
    static struct ihipModuleSymbol_t symbol;
    (void)module;
    symbol.kernel = (Kernel)(uintptr_t)dlsym(RTLD_DEFAULT, name);
    *function = &symbol;
    return said(symbol.kernel ? hipSuccess : hipErrorNotFound);
}

API hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned int gx, unsigned int gy, unsigned int gz,
                                     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                     hipStream_t stream, void **params, void **extra) {
    (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
    return launch(stream, f->kernel, params, gx * gy * gz);
}

API hipError_t hipExtModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
                                        uint32_t by, uint32_t bz, size_t shared, hipStream_t stream, void **params,
                                        void **extra, hipEvent_t start, hipEvent_t stop, uint32_t flags) {
    (void)shared, (void)extra, (void)start, (void)stop, (void)flags;
    return launch(stream, f->kernel, params, gx / bx * (gy / by) * (gz / bz));
}

API hipError_t EXT_OF_CXX(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                          uint32_t bz, size_t shared, hipStream_t stream, void **params, void **extra,
                          hipEvent_t start, hipEvent_t stop, uint32_t flags) {
    return hipExtModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra, start, stop, flags);
}

/* ---- Graphs */

API hipError_t hipStreamBeginCapture(hipStream_t stream, int mode) {
    (void)mode;
    return hipMalloc((void **)&stream->capturing, sizeof *stream->capturing);
}

API hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph) {
    *graph = stream->capturing;
    stream->capturing = NULL;
    return said(hipSuccess);
}

API hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, void *node, char *log, size_t size) {
    (void)node, (void)log, (void)size;
    hipError_t error = hipMalloc((void **)exec, sizeof **exec);
    (*exec)->graph = *graph;
    return error;
}

API hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
    for (int i = 0; i < exec->graph.count; i++)
        exec->graph.steps[i].kernel(exec->graph.steps[i].args);
    runs("graph", NULL, stream, 100000ul * (unsigned)exec->graph.count, (size_t)exec->graph.count);
    return said(hipSuccess);
}

API hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
    free(exec);
    return said(hipSuccess);
}

API hipError_t hipGraphDestroy(hipGraph_t graph) {
    free(graph);
    return said(hipSuccess);
}

#ifdef OTHER
/* A library of another maker has functions that end a program that did not ask for them: chipStar throws here. */
hipError_t hipThreadExchangeStreamCaptureMode(int *mode)
{
    (void)mode;
    abort();
}
#endif
