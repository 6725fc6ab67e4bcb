/* A program of HIP that counts its own calls and prints what they came to. It is linked to the fake library, on which its
 * kernels run here. */
#include "counted.h"
#include "hip.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

static void ok(hipError_t error, int line) {
    if (error != hipSuccess) {
        printf("line %d: error %d\n", line, error);
        exit(2);
    }
}
#define OK(function, ...) ok(CALL(function, __VA_ARGS__), __LINE__)

enum { ELEMENTS = 1000 };

__attribute__((visibility("default"))) void add_one(void **args) {
    float *data = *(float **)args[0];
    for (int i = 0; i < *(int *)args[1]; i++)
        data[i] += 1;
}

static void device(void) {
    int n = 0;
    OK(hipInit, 0);
    OK(hipGetDeviceCount, &n);
    OK(hipSetDevice, 0);
    static hipDeviceProp_tR0600 properties;
    OK(hipGetDevicePropertiesR0600, &properties, 0);
    printf("%d device: %s\n", n, properties.name);
}

static hipStream_t stream;
static float *memory, *host;

static void memory_and_copies(void) {
    OK(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking);
    OK(hipMalloc, (void **)&memory, ELEMENTS * sizeof(float));
    OK(hipHostMalloc, (void **)&host, ELEMENTS * sizeof(float), hipHostMallocMapped | hipHostMallocNonCoherent);
    for (int i = 0; i < ELEMENTS; i++)
        host[i] = (float)i;
    OK(hipMemset, memory, 0, ELEMENTS * sizeof(float));
    OK(hipMemcpyAsync, memory, host, ELEMENTS * sizeof(float), hipMemcpyHostToDevice, stream);
    hipArray_t array;
    hipChannelFormatDesc channels = {32, 0, 0, 0, 2};
    OK(hipMallocArray, &array, &channels, 64, 32, 0);
    OK(hipFreeArray, array);
    int *filled;
    OK(hipMalloc, (void **)&filled, 64 * sizeof(int));
    OK(hipMemsetD32Async, filled, 7, 64, stream);
    int first[64];
    OK(hipMemcpyDtoH, first, filled, sizeof first);
    printf("filled %d\n", first[63]);
    OK(hipFree, filled);
}

static void kernels(void) {
    void **modules = CALL(__hipRegisterFatBinary, "__CLANG_OFFLOAD_BUNDLE__");
    count("__hipRegisterFunction");
    __hipRegisterFunction(modules, (void *)(uintptr_t)add_one, (char *)"_Z7add_onePfi", "_Z7add_onePfi", ~0u, NULL, NULL, NULL,
                          NULL, NULL);
    int elements = ELEMENTS;
    void *args[] = {&memory, &elements};
    for (unsigned i = 1; i <= 10; i++) {
        dim3 grid = {i, 1, 1}, block = {64, 2, 1};
        size_t shared = 16;
        hipStream_t on = stream;
        OK(__hipPushCallConfiguration, grid, block, shared, on);
        OK(__hipPopCallConfiguration, &grid, &block, &shared, &on);
        OK(hipLaunchKernel, (void *)(uintptr_t)add_one, grid, block, args, shared, on);
    }
    hipModule_t module;
    hipFunction_t function;
    OK(hipModuleLoadData, &module, "\177ELF of a code object");
    OK(hipModuleGetFunction, &function, module, "add_one");
    OK(hipModuleLaunchKernel, function, 2, 3, 4, 32, 1, 1, 128, stream, args, NULL);
    hipEvent_t begin, end;
    OK(hipEventCreateWithFlags, &begin, 0);
    OK(hipEventCreateWithFlags, &end, 0);
    OK(hipExtModuleLaunchKernel, function, 64, 1, 1, 32, 1, 1, 0, stream, args, NULL, begin, end, 1);
    count(NAME(EXT_OF_CXX));
    ok(EXT_OF_CXX(function, 64, 1, 1, 32, 1, 1, 0, stream, args, NULL, begin, end, 0), __LINE__);
    OK(hipModuleUnload, module);
    OK(hipEventDestroy, begin);
    OK(hipEventDestroy, end);
}

static void graph(void) {
    static int elements = ELEMENTS;
    static void *args[] = {&memory, &elements};
    hipGraph_t graph;
    hipGraphExec_t exec;
    OK(hipStreamBeginCapture, stream, 0);
    OK(hipLaunchKernel, (void *)(uintptr_t)add_one, ((dim3){8, 1, 1}), ((dim3){128, 1, 1}), args, 0, stream);
    OK(hipStreamEndCapture, stream, &graph);
    OK(hipGraphInstantiate, &exec, graph, NULL, NULL, 0);
    for (int i = 0; i < 3; i++)
        OK(hipGraphLaunch, exec, stream);
    OK(hipGraphExecDestroy, exec);
    OK(hipGraphDestroy, graph);
}

static void events_and_waits(void) {
    hipEvent_t begin, end;
    float ms = 0;
    OK(hipEventCreateWithFlags, &begin, 0);
    OK(hipEventCreateWithFlags, &end, hipEventDisableTiming);
    OK(hipEventRecord, begin, stream);
    OK(hipMemcpyAsync, host, memory, ELEMENTS * sizeof(float), hipMemcpyDeviceToHost, stream);
    OK(hipEventRecord, end, stream);
    OK(hipStreamWaitEvent, stream, end, 0);
    int polls = 1;
    while (CALL(hipEventQuery, end) == hipErrorNotReady)
        polls++;
    OK(hipEventSynchronize, end);
    OK(hipStreamSynchronize, stream);
    OK(hipStreamQuery_spt, stream);
    OK(hipEventElapsedTime, &ms, begin, end);
    OK(hipDeviceSynchronize);
    printf("polls %d, %.1f ms, last %.0f\n", polls, ms, host[ELEMENTS - 1]);
    OK(hipEventDestroy, begin);
    OK(hipEventDestroy, end);
}

/* By the library's own look-up, and by the dynamic loader's. */
static void by_address(void) {
    hipError_t (*allocate)(void **, size_t) = NULL;
    int status = -1;
    OK(hipGetProcAddress, "hipMalloc", (void **)&allocate, 60400, 0, &status);
    void *piece = NULL;
    count("hipMalloc");
    ok(allocate(&piece, 512), __LINE__);
    hipError_t (*release)(void *) = (hipError_t(*)(void *))dlsym(RTLD_DEFAULT, "hipFree");
    count("hipFree");
    ok(release(piece), __LINE__);
    void *nothing = NULL;
    printf("no such function: %d", CALL(hipGetProcAddress, "hipNoSuch", &nothing, 60400, 0, &status));
    printf(", status %d\n", status);
}

static void failures(void) {
    char from[4] = "abc", to[4];
    printf("direction %d", CALL(hipMemcpy, to, from, 4, 9));
    printf(", free %d", CALL(hipFree, from + 1 - ((uintptr_t)from & 1)));
    printf(", device %d", CALL(hipSetDevice, 7));
    printf(", last %d", CALL(hipGetLastError));
    printf(", %s\n", CALL(hipGetErrorString, hipErrorInvalidDevice));
}

int main(void) {
    errno = 77;
    device();
    memory_and_copies();
    kernels();
    graph();
    events_and_waits();
    by_address();
    failures();
    OK(hipFree, memory);
    OK(hipHostFree, host);
    OK(hipStreamDestroy, stream);
    printf("errno %d\n", errno);
    counted();
    return 3;
}
