/* A plug-in that is linked to the runtime MAJOR. It calls it already when it is loaded. */
#include "runtime.h"

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaSetDevice(int);
int cudaIpcOpenMemHandle(void **, struct handle, unsigned);
int cudaMemcpyBatchAsync();

static int early;

__attribute__((constructor)) static void begin(void)
{
    void *address = NULL;
    early = !cudaMalloc(&address, 1) && !cudaFree(address);
}

/* The calls lie at the same places in the plug-ins of all runtimes. */
__attribute__((noinline)) static int once(void)
{
    void *address = NULL;
    return cudaMalloc(&address, 7) || (uintptr_t)address != MAJOR * 1000000ul + 7 || cudaFree(address);
}

__attribute__((destructor)) static void end(void)
{
    if (once())
        abort();
}

/* For a caller with little stack. */
int use_little(void)
{
    return once();
}

/* Calls by name and not through pointers: these find their way by who makes them. */
int use(void)
{
    void *address = NULL;
    struct handle handle;
    for (int i = 0; i < 64; i++)
        handle.bytes[i] = (char)(i + MAJOR);
    if (!early || once() || cudaMalloc(&address, 5) || (uintptr_t)address != MAJOR * 1000000ul + 5 || cudaFree(address))
        return 1;
    if (cudaSetDevice(0) || cudaIpcOpenMemHandle(&address, handle, 1))
        return 2;
#if MAJOR < 13
    return cudaMemcpyBatchAsync(NULL, NULL, NULL, (size_t)4, NULL, NULL, (size_t)7, NULL, (void *)9);
#else
    return cudaMemcpyBatchAsync(NULL, NULL, NULL, (size_t)4, NULL, NULL, (size_t)7, (void *)8);
#endif
}
