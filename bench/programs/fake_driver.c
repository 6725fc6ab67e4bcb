/* A driver that does nothing, as fast as that can be done: what a call costs beside it is
 * the tracer's. It answers what the tracer asks to time commands by events; an event is
 * over as soon as it is recorded. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GIVES(name, type, value)   \
    int name(type *out)            \
    {                              \
        *out = (value);            \
        return 0;                  \
    }
#define DOES_NOTHING(name, ...)    \
    int name(__VA_ARGS__)          \
    {                              \
        return 0;                  \
    }

static char context, module, function, stream, event;
/* Kernels that have a twin, and these. */
static char functions[2];
static uint64_t base;

GIVES(cuDriverGetVersion, int, 13000)
GIVES(cuDeviceGetCount, int, 1)
GIVES(cuCtxGetCurrent, void *, &context)
GIVES(cuCtxGetDevice, int, 0)
GIVES(cuCtxPopCurrent_v2, void *, &context)
GIVES(cuThreadExchangeStreamCaptureMode, int, 0)
DOES_NOTHING(cuInit, unsigned flags)
DOES_NOTHING(cuCtxSynchronize, void)
DOES_NOTHING(cuCtxPushCurrent_v2, void *c)
DOES_NOTHING(cuEventRecord, void *e, void *s)
DOES_NOTHING(cuEventQuery, void *e)
DOES_NOTHING(cuEventDestroy_v2, void *e)
DOES_NOTHING(cuStreamSynchronize, void *s)
DOES_NOTHING(cuStreamDestroy_v2, void *s)
DOES_NOTHING(cuMemFree_v2, uint64_t at)
DOES_NOTHING(cuMemsetD8Async, uint64_t at, unsigned char value, size_t bytes, void *s)
DOES_NOTHING(cuMemHostRegister_v2, void *at, size_t bytes, unsigned flags)
DOES_NOTHING(cuLaunchKernel, void *f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b,
             unsigned c, unsigned shared, void *s, void **params, void **extra)

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute + device;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal != 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
    strncpy(name, "none", length);
    return device;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = 1 << 30;
    return device;
}

int cuCtxGetId(void *c, uint64_t *id)
{
    *id = 1;
    return c != &context;
}

int cuDevicePrimaryCtxRetain(void **c, int device)
{
    *c = &context;
    return device;
}

int cuModuleLoadData(void **m, const void *image)
{
    *m = &module;
    return image == NULL;
}

int cuModuleGetFunction(void **f, void *m, const char *name)
{
    *f = name && !strncmp(name, "wanted", 6) ? &functions[name[6] != 0] : &function;
    return m != &module || !name;
}

int cuFuncGetName(const char **name, void *f)
{
    *name = f == &function ? "nothing" : "wanted";
    return f != &function && f != &functions[0];
}

/* What memory for records needs. */
int cuModuleGetGlobal_v2(uint64_t *at, size_t *bytes, void *m, const char *name)
{
    *at = (uint64_t)&base;
    *bytes = sizeof base;
    return m != &module || !name;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
    *at = (uint64_t)calloc(1, bytes);
    return *at == 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s)
{
    memcpy((void *)to, from, bytes);
    return s != &stream;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *s)
{
    memcpy(to, (const void *)from, bytes);
    return s != &stream;
}

int cuMemHostGetDevicePointer_v2(uint64_t *out, void *at, unsigned flags)
{
    *out = (uint64_t)at;
    return flags != 0;
}

int cuStreamCreate(void **s, unsigned flags)
{
    *s = &stream;
    return flags > 1;
}

int cuStreamGetCtx(void *s, void **c)
{
    *c = &context;
    return s != &stream;
}

int cuStreamGetId(void *s, uint64_t *id)
{
    *id = 7;
    return s != &stream;
}

int cuStreamIsCapturing(void *s, int *status)
{
    *status = 0;
    return s != &stream;
}

int cuEventCreate(void **e, unsigned flags)
{
    *e = &event;
    return flags > 7;
}

int cuEventElapsedTime(float *ms, void *start, void *end)
{
    *ms = 0.001f;
    return start != &event || end != &event;
}

/* Takes a while: so many steps as `free` says, with a lock that nobody else wants; does nothing if it says 0. */
int cuMemGetInfo_v2(size_t *free, size_t *total)
{
    static unsigned lock;
    if (*free == 0)
        return 0;
    __atomic_fetch_add(&lock, 1, __ATOMIC_SEQ_CST);
    for (size_t i = *free; i; i--)
        __asm__ volatile("" : "+r"(i));
    __atomic_fetch_sub(&lock, 1, __ATOMIC_SEQ_CST);
    return total == NULL;
}

/* What the runtime asks for. */
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    *out = NULL;
    if (strcmp(name, "cuCtxGetCurrent") == 0)
        *out = (void *)cuCtxGetCurrent;
    else if (strcmp(name, "cuMemGetInfo") == 0)
        *out = (void *)cuMemGetInfo_v2;
    else if (strcmp(name, "cuLaunchKernel") == 0)
        *out = (void *)cuLaunchKernel;
    if (status)
        *status = *out == NULL;
    return flags != 0 || version < 12000;
}
