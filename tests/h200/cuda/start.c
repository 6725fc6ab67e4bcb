/* What CUPTI's start and end take, part by part, in a program that does next to nothing and starts CUPTI itself:
 *
 *   start bare | subscribe | default | ATTRIBUTE=VALUE[,ATTRIBUTE=VALUE...]   [LAUNCHES]
 *
 * `subscribe` enables no activity, `default` those that hetrace enables. Attributes are CUPTI's, set before the first
 * context is made: buffers (allocated ahead for each context), size (of each, bytes), pinned (0: in the device's memory), managed (1:
 * counters of managed memory, allocated and touched). Writes a line with ms of each part, ns of a launch, and when main
 * began and ended, in ms of CLOCK_MONOTONIC, so that whoever started it knows how long its begin and its end took.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static double since;

static void part(const char *name) {
    printf("%s=%.3f ", name, now_ms() - since);
    since = now_ms();
}

#define OK(call)                                                   \
    do {                                                           \
        int code = (int)(call);                                    \
        if (code) {                                                \
            fprintf(stderr, "%s: %d\n", #call, code);              \
            exit(98);                                              \
        }                                                          \
    } while (0)

#define CUPTI(name) static __typeof__(&name) p_##name;
#define ALL(X)                                                                                                     \
    X(cuptiSubscribe) X(cuptiActivityEnable) X(cuptiActivityRegisterCallbacks) X(cuptiActivityFlushAll)           \
    X(cuptiActivitySetAttribute) X(cuptiActivityGetNextRecord) X(cuptiActivityConfigureUnifiedMemoryCounter)
ALL(CUPTI)

static unsigned long kernels;

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = aligned_alloc(8, 1 << 20);
    memset(*buffer, 0, *size = 1 << 20);
    *records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && p_cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    free(buffer);
}

static void CUPTIAPI called(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info) {
    (void)data, (void)domain, (void)id, (void)info;
}

static void attribute(const char *text) {
    const char *value = strchr(text, '=');
    if (!value) return;
    size_t number = strtoull(value + 1, NULL, 10), size = sizeof number;
    uint8_t byte = (uint8_t)number, zeroed = 1;
    size_t one = 1;
    if (!strncmp(text, "buffers", 7))
        OK(p_cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &size, &number));
    if (!strncmp(text, "size", 4))
        OK(p_cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &number));
    if (!strncmp(text, "pinned", 6))
        OK(p_cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &one, &byte));
    OK(p_cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &one, &zeroed));
}

static void counters(void) {
    CUpti_ActivityUnifiedMemoryCounterConfig configs[2];
    memset(configs, 0, sizeof configs);
    for (int i = 0; i < 2; i++) {
        configs[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
        configs[i].kind = i ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH
                            : CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
        configs[i].enable = 1;
    }
    OK(p_cuptiActivityConfigureUnifiedMemoryCounter(configs, 2));
    OK(p_cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
}

static void start(const char *way) {
    void *library = dlopen("libcupti.so", RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(98);
    }
#define FIND(name) p_##name = (__typeof__(p_##name))dlsym(library, #name);
    ALL(FIND)
    part("load");
    CUpti_SubscriberHandle subscriber;
    OK(p_cuptiSubscribe(&subscriber, called, NULL));
    part("subscribe");
    if (strcmp(way, "subscribe")) {
        char *copy = strdup(way), *rest = NULL;
        for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) attribute(one);
        OK(p_cuptiActivityRegisterCallbacks(requested, completed));
        if (strstr(way, "managed=1")) counters();
        OK(p_cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
        OK(p_cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
        OK(p_cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2));
        OK(p_cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    }
    part("enable");
}

static const char EMPTY[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";

int main(int argc, char **argv) {
    double begun = now_ms();
    const char *way = argc > 1 ? argv[1] : "bare";
    long launches = argc > 2 ? atol(argv[2]) : 20000;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction empty;
    CUdeviceptr memory;
    since = begun;
    OK(cuInit(0));
    part("init");
    if (strcmp(way, "bare")) start(way);
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    part("context");
    OK(cuModuleLoadData(&module, EMPTY));
    OK(cuModuleGetFunction(&empty, module, "empty"));
    part("module");
    OK(cuMemAlloc(&memory, 1 << 16));
    part("memory");
    OK(cuMemsetD8(memory, 0, 1 << 16));
    part("fill");
    OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    part("first");
    OK(cuCtxSynchronize());
    part("wait");
    if (strstr(way, "managed")) {
        CUdeviceptr managed;
        OK(cuMemAllocManaged(&managed, 1 << 20, CU_MEM_ATTACH_GLOBAL));
        part("managed");
        memset((void *)managed, 1, 1 << 20);
        part("touch");
        OK(cuMemFree(managed));
        part("free");
    }
    for (int i = 0; i < 1000; i++) OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    part("warm");
    for (long i = 0; i < launches; i++) OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    double each = (now_ms() - since) * 1e6 / (launches ? launches : 1);
    since = now_ms();
    if (p_cuptiActivityFlushAll) OK(p_cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    part("flush");
    OK(cuDevicePrimaryCtxRelease(device));
    part("release");
    printf("launch_ns=%.0f kernels=%lu begin=%.3f end=%.3f\n", each, kernels, begun, now_ms());
    return 0;
}
