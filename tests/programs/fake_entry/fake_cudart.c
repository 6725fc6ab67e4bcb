/* Stands for libcudart.so.MAJOR. Its symbols carry its version, as the real one's do;
 * what it allocates it knows again, and what belongs to another one it refuses. */
#include "fake.h"
#include <dlfcn.h>
#include <stdint.h>

struct handle {
    char bytes[64];
};

int cudaRuntimeGetVersion(int *version)
{
    /* Not counted: the tracer asks, too. */
    *version = MAJOR * 1000;
    return 0;
}

int cudaMalloc(void **address, size_t size)
{
    COUNT(1);
    *address = (void *)(MAJOR * 1000000 + size);
    return 0;
}

int cudaFree(void *address)
{
    COUNT(1);
    return (uintptr_t)address / 1000000 == MAJOR ? 0 : 17;
}

int cudaDeviceSynchronize(void)
{
    COUNT(1);
    return 0;
}

/* Reaches the driver as the real one does: by dlopen and cuGetProcAddress. */
int cudaSetDevice(int device)
{
    COUNT(1);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*get)(const char *, void **, int, uint64_t, int *) = dlsym(driver, "cuGetProcAddress_v2");
    int (*init)(unsigned), status;
    if (!get || get("cuInit", (void **)&init, 12000, 0, &status) || !init)
        return 35;
    return init(device);
}

/* A struct that is passed by value. */
int cudaIpcOpenMemHandle(void **address, struct handle handle, unsigned flags)
{
    COUNT(1);
    for (int i = 0; i < 64; i++)
        if (handle.bytes[i] != i + MAJOR)
            return 1;
    *address = (void *)(MAJOR * 1000000L);
    return flags != 1;
}

/* Its signature has changed, and of this one the model knows only the newest. */
#if MAJOR < 13
int cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count, void *attrs, size_t *idxs,
                         size_t n, size_t *fail, void *stream)
{
    COUNT(0);
    return !(!dsts && !srcs && !sizes && count == 4 && !attrs && !idxs && n == 7 && !fail && stream == (void *)9);
}
#else
int cudaMemcpyBatchAsync(const void **dsts, const void **srcs, const size_t *sizes, size_t count, void *attrs,
                         size_t *idxs, size_t n, void *stream)
{
    COUNT(1);
    return !(!dsts && !srcs && !sizes && count == 4 && !attrs && !idxs && n == 7 && stream == (void *)8);
}
#endif
