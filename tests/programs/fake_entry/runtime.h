/* What the programs know of the fake runtimes. */
#ifndef RUNTIME_H
#define RUNTIME_H
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                                              \
    do {                                                                         \
        if (!(what)) {                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, dlerror()); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

struct handle {
    char bytes[64];
};

struct runtime {
    int (*allocate)(void **, size_t);
    int (*release)(void *);
    int (*set_device)(int);
    int (*open_handle)(void **, struct handle, unsigned);
    void *batch;
};

/* Whether every call came to the runtime of this version: 5 calls. */
static inline int uses(const struct runtime *r, int major)
{
    void *address = NULL;
    struct handle handle;
    for (int i = 0; i < 64; i++)
        handle.bytes[i] = (char)(i + major);
    if (r->allocate(&address, 5) || (uintptr_t)address != major * 1000000ul + 5 || r->release(address))
        return 0;
    if (r->set_device(0) || r->open_handle(&address, handle, 1) || (uintptr_t)address != major * 1000000ul)
        return 0;
    typedef int (*old)(void *, void *, void *, size_t, void *, void *, size_t, void *, void *);
    typedef int (*new)(void *, void *, void *, size_t, void *, void *, size_t, void *);
    return major < 13 ? !((old)r->batch)(0, 0, 0, 4, 0, 0, 7, 0, (void *)9)
                      : !((new)r->batch)(0, 0, 0, 4, 0, 0, 7, (void *)8);
}

static inline struct runtime found(void *library)
{
    struct runtime r = {
        (int (*)(void **, size_t))dlsym(library, "cudaMalloc"),
        (int (*)(void *))dlsym(library, "cudaFree"),
        (int (*)(int))dlsym(library, "cudaSetDevice"),
        (int (*)(void **, struct handle, unsigned))dlsym(library, "cudaIpcOpenMemHandle"),
        dlsym(library, "cudaMemcpyBatchAsync"),
    };
    CHECK(r.allocate && r.release && r.set_device && r.open_handle && r.batch);
    return r;
}
#endif
