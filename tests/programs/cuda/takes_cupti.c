/* Uses CUPTI itself, in the middle of a run, as profilers of frameworks do: linked to it
 * (-DLINKED), or found by dlopen and dlsym. It must get all that happens from then on.
 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

CUresult cuInit(unsigned);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);

typedef void (*callback)(void *, uint32_t, uint32_t, const void *);
typedef void (*requester)(uint8_t **, size_t *, size_t *);
typedef void (*completer)(CUcontext, uint32_t, uint8_t *, size_t, size_t);

int cuptiSubscribe(void **, callback, void *);
int cuptiUnsubscribe(void *);
int cuptiActivityRegisterCallbacks(requester, completer);
int cuptiActivityEnable(uint32_t);
int cuptiActivityGetNextRecord(uint8_t *, size_t, uint8_t **);
int cuptiActivityFlushAll(uint32_t);

#ifdef LINKED
#define CUPTI(name) name
#else
static void *library;
#define CUPTI(name) ((__typeof__(&name))dlsym(library, #name))
#endif
#define OK(call)                                                                                   \
    do {                                                                                           \
        int error_ = (call);                                                                       \
        if (error_) {                                                                              \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, error_);                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int kernels;

static void called(void *data, uint32_t domain, uint32_t function, const void *call)
{
    (void)data, (void)domain, (void)function, (void)call;
}

static void give(uint8_t **buffer, size_t *size, size_t *records)
{
    *size = 65536;
    *buffer = aligned_alloc(8, *size);
    *records = 0;
}

static void take(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    uint8_t *record = NULL;
    (void)context, (void)stream, (void)size;
    while (CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == 0)
        kernels += *(uint32_t *)record == 10;
    free(buffer);
}

int main(void)
{
    CUcontext c;
    CUmodule m;
    CUfunction f;
    void *subscriber;
#ifndef LINKED
    if (!(library = dlopen("libcupti.so.13", RTLD_NOW)))
        return 1;
#endif
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuModuleLoadData(&m, "code"));
    OK(cuModuleGetFunction(&f, m, "k2000"));
    for (int i = 0; i < 20; i++)
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(CUPTI(cuptiSubscribe)(&subscriber, called, NULL));
    OK(CUPTI(cuptiActivityRegisterCallbacks)(give, take));
    OK(CUPTI(cuptiActivityEnable)(10));
    for (int i = 0; i < 30; i++)
        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(CUPTI(cuptiActivityFlushAll)(1));
    OK(CUPTI(cuptiUnsubscribe)(subscriber));
    printf("%d kernels\n", kernels);
    return 0;
}
