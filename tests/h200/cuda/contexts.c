/* The driver API by itself: a module of PTX, two contexts, one destroyed while its kernels
 * run, an entry point asked for by name. Prints what it computed. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        CUresult error = (call);                                           \
        if (error) {                                                       \
            const char *name = "?";                                        \
            cuGetErrorName(error, &name);                                  \
            printf("%s: %s\n", #call, name);                               \
            exit(3);                                                       \
        }                                                                  \
    } while (0)

static const char *ptx =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry count(.param .u64 p, .param .u32 rounds) {\n"
    ".reg .pred %q; .reg .u32 %r<4>; .reg .u64 %d<3>;\n"
    "ld.param.u64 %d1, [p]; ld.param.u32 %r1, [rounds]; cvta.to.global.u64 %d2, %d1; mov.u32 %r2, 0;\n"
    "again: add.u32 %r2, %r2, 1; atom.global.add.u32 %r3, [%d2], 1; setp.lt.u32 %q, %r2, %r1; @%q bra again;\n"
    "ret; }\n";

int main(void) {
    CUdevice device;
    CUcontext first, second;
    CUmodule module;
    CUfunction count;
    CUdeviceptr word;
    unsigned rounds = 1000, result = 0;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
#if CUDA_VERSION >= 13000
    CHECK(cuCtxCreate(&first, NULL, 0, device));
#else
    CHECK(cuCtxCreate(&first, 0, device));
#endif
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuMemAlloc(&word, 4));
    CHECK(cuMemsetD32(word, 0, 1));
    void *arguments[] = {&word, &rounds};
    for (int i = 0; i < 50; i++) CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(&result, word, 4));
    printf("counted %u\n", result);

    CUresult (*version)(int *) = NULL;
    CUdriverProcAddressQueryResult found;
    CHECK(cuGetProcAddress("cuDriverGetVersion", (void **)&version, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
    int number = 0;
    CHECK(version(&number));
    printf("driver %s\n", number >= 12000 ? "new enough" : "old");

#if CUDA_VERSION >= 13000
    CHECK(cuCtxCreate(&second, NULL, 0, device));
#else
    CHECK(cuCtxCreate(&second, 0, device));
#endif
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuMemAlloc(&word, 4));
    rounds = 100000;
    for (int i = 0; i < 20; i++) CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuCtxDestroy(second)); /* Without waiting. */
    CHECK(cuCtxSetCurrent(first));
    CHECK(cuCtxSynchronize());
    CHECK(cuCtxDestroy(first));
    printf("done\n");
    return 0;
}
