/* Commands of HIP on the fake library's time lines, in all ways in which programs enqueue them; what ran, the library
 * says at the end (RAN). The thread's last error, which is the program's, is printed where it could have changed. */
#include "hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_say_ran(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipStreamSynchronize_spt(hipStream_t stream);
hipError_t hipLaunchKernel_spt(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                               hipStream_t stream);
hipError_t hipLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args, unsigned shared,
                                      hipStream_t stream);
hipError_t hipDeviceReset(void);

#define OK(call)                                  \
    do {                                          \
        hipError_t error_ = (call);               \
        if (error_ != hipSuccess) {               \
            printf(#call " = %d\n", error_);      \
            exit(9);                              \
        }                                         \
    } while (0)

/* Kernels of the host's. */
void first(void **args) { (void)args; }
void second(void **args) { (void)args; }
void module_kernel(void **args) { (void)args; }

static void name(void (*kernel)(void **), const char *known_as) {
    __hipRegisterFunction(NULL, (const void *)(uintptr_t)kernel, NULL, known_as, 0, NULL, NULL, NULL, NULL, NULL);
}

static void launch(void (*kernel)(void **), uint32_t groups, hipStream_t stream) {
    OK(hipLaunchKernel((const void *)(uintptr_t)kernel, (dim3){groups, 1, 1}, (dim3){32, 2, 1}, NULL, 64, stream));
}

static void errors(const char *where) {
    printf("%s: last error %d\n", where, hipPeekAtLastError());
}

int main(void) {
    static char from[8192], to[8192];
    hipStream_t stream, captured;
    hipModule_t module;
    hipFunction_t function;
    hipGraph_t graph;
    hipGraphExec_t exec;
    OK(hipInit(0));
    name(first, "_Z5firstPf");
    name(second, "_Z6secondPf");
    OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&captured, hipStreamNonBlocking));
    OK(hipModuleLoadData(&module, "\177ELF"));
    OK(hipModuleGetFunction(&function, module, "module_kernel"));
    for (int i = 0; i < 3; i++) {
        /* For five milliseconds, in which all others come behind it. */
        launch(first, 500, stream);
        OK(hipMemcpyAsync(to, from, 4096, hipMemcpyHostToDevice, stream));
        OK(hipModuleLaunchKernel(function, 2, 3, 1, 16, 1, 1, 0, stream, NULL, NULL));
        OK(hipExtModuleLaunchKernel(function, 64, 8, 1, 16, 2, 1, 0, stream, NULL, NULL, NULL, NULL, 0));
        OK(hipLaunchCooperativeKernel((const void *)(uintptr_t)second, (dim3){4, 1, 1}, (dim3){8, 1, 1}, NULL, 0, stream));
        OK(hipMemsetD32Async(to, 1, 256, stream));
        OK(hipMemcpyAsync(to, from, 512, hipMemcpyDeviceToHost, stream));
        OK(hipMemcpyAsync(to, from, 256, hipMemcpyDefault, stream));
        OK(hipStreamSynchronize(stream));
    }
    errors("streams");
    /* The default streams, of all threads and of this one. */
    launch(first, 5, NULL);
    OK(hipLaunchKernel_spt((const void *)(uintptr_t)second, (dim3){6, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    OK(hipMemset(to, 0, 100));
    OK(hipMemcpyDtoH(to, from, 64));
    OK(hipStreamSynchronize_spt(NULL));
    errors("default streams");
    /* Two commands in a graph, which is launched twice. */
    OK(hipStreamBeginCapture(captured, 0));
    launch(first, 7, captured);
    launch(second, 8, captured);
    OK(hipStreamEndCapture(captured, &graph));
    OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(hipGraphLaunch(exec, stream));
    OK(hipGraphLaunch(exec, stream));
    OK(hipStreamSynchronize(stream));
    /* A launch that fails, whose error the program asks for later, and one that goes on. */
    if (hipLaunchKernel((const void *)(uintptr_t)first, (dim3){0, 1, 1}, (dim3){1, 1, 1}, NULL, 0, stream) == hipSuccess)
        return 8;
    errors("failed");
    launch(first, 9, stream);
    OK(hipStreamSynchronize(stream));
    errors("after it");
    printf("got %d, then %d\n", hipGetLastError(), hipGetLastError());
    launch(second, 10, stream);
    OK(hipDeviceSynchronize());
    errors("again");
    OK(hipGraphExecDestroy(exec));
    OK(hipGraphDestroy(graph));
    OK(hipStreamDestroy(captured));
    OK(hipStreamDestroy(stream));
    OK(hipModuleUnload(module));
    launch(first, 11, NULL);
    OK(hipDeviceSynchronize());
    OK(hipDeviceReset());
    launch(second, 12, NULL);
    OK(hipDeviceSynchronize());
    fake_say_ran();
    return 3;
}
