/* One planted misuse of the driver, or the same work done right: what `lint` is to find, and what it is not to.
 *
 *   misuse MODE [right]
 *
 * after:    a copy into memory that has been freed
 * twice:    memory is freed twice
 * bounds:   a copy beyond the end of an allocation
 * memory:   allocations that are never freed
 * streams:  streams that are never destroyed
 * events:   events that are never destroyed
 * dead:     a launch into a stream that has been destroyed
 * host:     two streams read into the same memory
 * race:     a stream fills what another one copies
 * nothing:  a copy to the host of memory that nothing has written
 * legacy:   kernels in the default stream between those of another
 * error:    results are read back after a launch that failed
 * wait:     each event is waited for twice
 * sync:     the host waits after each launch
 * finish:   the context is waited for that has nothing to do
 * loop:     memory is allocated and freed around each launch
 * pageable: an asynchronous copy from memory that is not pinned
 * grows:    in each round memory is allocated, and never freed
 * pool:     memory is allocated in the first of many rounds, and never freed
 * again:    the same bytes are sent between launches
 *
 * MISUSE_CODE names a file of PTX with a kernel k20000, for a driver that is none of ours.
 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuEventCreate(CUevent *, unsigned);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventSynchronize(CUevent);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocHost_v2(void **, size_t);
CUresult cuMemFreeHost(void *);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);

enum { BYTES = 1 << 17, ROUNDS = 12 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        CUresult ok_ = (call);                                                                     \
        if (ok_) {                                                                                 \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, ok_);                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char *mode;
static int right;
static CUstream one, two;
static CUevent event;
static CUfunction kernel;
static CUdeviceptr memory;
static char *pinned, *plain;

static int is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static CUresult launch(CUstream stream, unsigned blocks)
{
    return cuLaunchKernel(kernel, blocks, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

/* Memory and objects that are gone, or never go. */
static int lifetimes(void)
{
    CUdeviceptr other;
    CUstream stream;
    CUevent late;
    if (is("after") || is("twice") || is("bounds")) {
        /* The fake driver's memory is the heap: what is wrong here must not hurt that. */
        OK(cuMemAlloc_v2(&other, 4096));
        OK(cuMemcpyHtoD_v2(other, pinned, 4096));
        if (is("bounds"))
            (void)!cuMemcpyDtoH_v2(plain, other + 4000, right ? 96 : 100);
        if (right && is("after"))
            OK(cuMemcpyHtoD_v2(other + 1024, pinned, 64));
        OK(cuMemFree_v2(other));
        if (!right && is("after"))
            (void)!cuMemcpyHtoD_v2(other + 1024, pinned, 64);
        if (!right && is("twice"))
            (void)!cuMemFree_v2(other);
        return 1;
    }
    if (is("dead")) {
        OK(cuStreamCreate(&stream, 0));
        if (!right)
            OK(cuStreamDestroy_v2(stream));
        (void)!launch(stream, 132);
        if (right) {
            OK(cuStreamSynchronize(stream));
            OK(cuStreamDestroy_v2(stream));
        }
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        if (is("memory")) {
            OK(cuMemAlloc_v2(&other, BYTES));
            if (right)
                OK(cuMemFree_v2(other));
        } else if (is("streams")) {
            OK(cuStreamCreate(&stream, 0));
            if (right)
                OK(cuStreamDestroy_v2(stream));
        } else if (is("events")) {
            OK(cuEventCreate(&late, 0));
            OK(cuEventRecord(late, one));
            OK(cuEventSynchronize(late));
            if (right)
                OK(cuEventDestroy_v2(late));
        } else {
            return 0;
        }
    }
    return 1;
}

/* Commands that nothing orders, and bytes that nothing has written or waited for. */
static int order(void)
{
    if (is("host") || is("race")) {
        CUdeviceptr from = memory;
        if (is("host"))
            OK(cuMemcpyDtoHAsync_v2(pinned, memory, BYTES / 2, one));
        else
            OK(cuMemsetD8Async(memory, 1, BYTES / 2, one));
        OK(cuEventRecord(event, one));
        if (right)
            OK(cuStreamWaitEvent(two, event, 0));
        OK(cuMemcpyDtoHAsync_v2(pinned, from + (is("host") ? BYTES / 2 : 0), BYTES / 2, two));
        OK(cuStreamSynchronize(one));
        OK(cuStreamSynchronize(two));
    } else if (is("nothing")) {
        CUdeviceptr other;
        OK(cuMemAlloc_v2(&other, BYTES));
        if (right)
            OK(cuMemcpyHtoD_v2(other, pinned, BYTES));
        OK(cuMemcpyDtoH_v2(plain, other, BYTES));
        OK(cuMemFree_v2(other));
    } else if (is("error")) {
        CUresult failed = launch(one, right ? 132 : 0);
        OK(cuMemcpyDtoHAsync_v2(pinned, memory, BYTES, one));
        OK(cuStreamSynchronize(one));
        if (right)
            OK(failed);
    } else {
        return 0;
    }
    return 1;
}

/* Memory that is never freed, in a program that launches: more in each round, or in the first one only. */
static int rounds(void)
{
    CUdeviceptr made[2 * ROUNDS];
    int count = 0;
    if (!is("grows") && !is("pool"))
        return 0;
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 2 && (is("grows") || i == 0); k++)
            OK(cuMemAlloc_v2(&made[count++], BYTES));
        for (int k = 0; k < 10; k++)
            OK(launch(one, 132));
    }
    OK(cuStreamSynchronize(one));
    while (right && count > 0)
        OK(cuMemFree_v2(made[--count]));
    return 1;
}

/* Time that is lost. */
static int waste(void)
{
    CUdeviceptr other;
    if (is("pageable")) {
        OK(cuMemcpyHtoDAsync_v2(memory, right ? pinned + BYTES : plain, BYTES, one));
        OK(cuStreamSynchronize(one));
        return 1;
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (is("legacy")) {
            OK(launch(right ? two : NULL, 132));
            OK(launch(one, 132));
        } else if (is("wait")) {
            OK(launch(one, 132));
            OK(launch(one, 132));
            OK(cuEventRecord(event, one));
            OK(cuEventSynchronize(event));
            if (!right)
                OK(cuEventSynchronize(event));
        } else if (is("sync")) {
            OK(launch(one, 132));
            if (!right)
                OK(cuStreamSynchronize(one));
        } else if (is("finish")) {
            OK(launch(one, 132));
            OK(launch(one, 132));
            OK(cuCtxSynchronize());
            if (!right)
                OK(cuCtxSynchronize());
        } else if (is("again")) {
            if (right)
                pinned[BYTES / 2] = i + 1;
            OK(launch(one, 132));
            OK(cuMemcpyHtoD_v2(memory, pinned, BYTES));
            OK(launch(one, 132));
        } else if (is("loop")) {
            if (!right)
                OK(cuMemAlloc_v2(&other, BYTES));
            OK(launch(one, 132));
            OK(launch(one, 132));
            if (!right)
                OK(cuMemFree_v2(other));
        } else {
            return 0;
        }
    }
    OK(cuStreamSynchronize(one));
    OK(cuStreamSynchronize(two));
    return 1;
}

/* What a module is loaded from. */
static const char *code(void)
{
    static char text[1 << 16] = "code";
    const char *path = getenv("MISUSE_CODE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
    }
    return text;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    mode = argc > 1 ? argv[1] : "";
    right = argc > 2;
    OK(cuInit(0));
    /* It is kept, as runtimes keep it: its end would free all. */
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    /* Streams that do not wait for the default one. */
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    OK(cuEventCreate(&event, 0));
    OK(cuModuleLoadData(&module, code()));
    OK(cuModuleGetFunction(&kernel, module, "k20000"));
    OK(cuMemAlloc_v2(&memory, BYTES));
    OK(cuMemAllocHost_v2((void **)&pinned, 2 * BYTES));
    plain = calloc(1, 2 * BYTES);
    OK(cuMemcpyHtoD_v2(memory, pinned, BYTES));

    if (!lifetimes() && !order() && !rounds() && !waste()) {
        fprintf(stderr, "no mode %s\n", mode);
        return 2;
    }

    OK(cuMemFree_v2(memory));
    OK(cuMemFreeHost(pinned));
    OK(cuModuleUnload(module));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(one));
    OK(cuStreamDestroy_v2(two));
    free(plain);
    return 0;
}
