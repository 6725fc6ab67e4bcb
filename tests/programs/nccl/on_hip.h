/* How the fake RCCL reaches HIP, which it is linked to as AMD's is. Its kernel runs on the host. */
#include "../hip/hip.h"

hipError_t hipGetDevice(int *device);

/* The one kernel that does all. */
#define GENERIC _Z24ncclDevKernel_Generic_4224ncclDevKernelArgsStorageILm4096EE
__attribute__((visibility("default"))) void GENERIC(void **args) { (void)args; }

static int reach_driver(void)
{
    int count;
    return hipGetDeviceCount(&count) == hipSuccess && count > 0;
}

static int current_device(int *device) { return hipGetDevice(device); }

/* 0 if it was launched. */
static int launch(const char *name, unsigned blocks, cudaStream_t stream)
{
    (void)name;
    return hipLaunchKernel((const void *)(uintptr_t)GENERIC, (dim3){blocks, 1, 1}, (dim3){256, 1, 1}, NULL, 0,
                           (hipStream_t)stream);
}
