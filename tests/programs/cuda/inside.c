/* Loads code in each of the ways that there are, and launches its kernels k1000 and k2000: what it sees of them must be
 * the same whatever a tracer does to the code.
 *
 *   inside WAY FILE [LAUNCHES [COPIES]]
 *
 * It prints names of kernels, logs and errors. */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuGraphCreate(CUgraph *, unsigned);
CUresult cuGraphAddKernelNode_v2(void **, CUgraph, const void *, size_t, const void *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuModuleLoad(CUmodule *, const char *);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleLoadDataEx(CUmodule *, const void *, unsigned, int *, void **);
CUresult cuModuleLoadFatBinary(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuModuleGetFunctionCount(unsigned *, CUmodule);
CUresult cuModuleEnumerateFunctions(CUfunction *, unsigned, CUmodule);
CUresult cuLibraryLoadData(CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned);
CUresult cuLibraryLoadFromFile(CUlibrary *, const char *, int *, void **, unsigned, int *, void **, unsigned);
CUresult cuLibraryGetKernel(CUkernel *, CUlibrary, const char *);
CUresult cuLibraryGetKernelCount(unsigned *, CUlibrary);
CUresult cuLibraryEnumerateKernels(CUkernel *, unsigned, CUlibrary);
CUresult cuKernelGetFunction(CUfunction *, CUkernel);
CUresult cuFuncGetName(const char **, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuKernelSetAttribute(int, int, CUkernel, CUdevice);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream, void **);
CUresult cuLaunchKernelEx(const CUlaunchConfig *, CUfunction, void **, void **);

#define OK(call)                                                                                   \
    do {                                                                                           \
        CUresult ok_ = (call);                                                                     \
        if (ok_) {                                                                                 \
            printf("%s: %d\n", #call, ok_);                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { SHARED = 60000 };

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "r");
    static char bytes[1 << 20];
    if (!f)
        exit(2);
    bytes[fread(bytes, 1, sizeof bytes - 1, f)] = 0;
    fclose(f);
    return bytes;
}

static void print_names(const char *what, unsigned count, CUfunction *list, unsigned room)
{
    printf("%s: %u:", what, count);
    for (unsigned i = 0; i < room && list[i]; i++) {
        const char *name = "?";
        OK(cuFuncGetName(&name, list[i]));
        printf(" %s", name);
    }
    printf("\n");
}

static void launch(CUfunction f, int times, CUstream s, unsigned shared)
{
    CUlaunchConfig config = {2, 1, 1, 32, 1, 1, shared, s, NULL, 0};
    for (int i = 0; i < times; i++)
        switch (i % 3) {
        case 0: OK(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, shared, s, NULL, NULL)); break;
        case 1: OK(cuLaunchKernelEx(&config, f, NULL, NULL)); break;
        default: OK(cuLaunchCooperativeKernel(f, 2, 1, 1, 32, 1, 1, shared, s, NULL));
        }
}

static void of_module(CUmodule m, int launches)
{
    CUfunction a, b, list[8] = {0};
    unsigned count = 0;
    OK(cuModuleGetFunctionCount(&count, m));
    OK(cuModuleEnumerateFunctions(list, 8, m));
    print_names("functions", count, list, 8);
    OK(cuModuleGetFunction(&a, m, "k1000"));
    OK(cuModuleGetFunction(&b, m, "k2000"));
    OK(cuFuncSetAttribute(a, 8, SHARED));
    launch(a, launches, NULL, SHARED);
    launch(b, launches, NULL, 0);
}

static void of_library(CUlibrary l, int launches)
{
    CUkernel k, list[8] = {0};
    CUfunction f;
    unsigned count = 0;
    OK(cuLibraryGetKernelCount(&count, l));
    OK(cuLibraryEnumerateKernels(list, 8, l));
    print_names("kernels", count, list, 8);
    OK(cuLibraryGetKernel(&k, l, "k1000"));
    OK(cuKernelSetAttribute(8, SHARED, k, 0));
    launch(k, launches, NULL, SHARED);
    OK(cuLibraryGetKernel(&k, l, "k2000"));
    OK(cuKernelGetFunction(&f, k));
    launch(f, launches, NULL, 0);
}

static void of_graph(CUmodule m, int launches)
{
    struct { CUfunction f; unsigned sizes[7]; void **params, **extra; CUkernel k; CUcontext c; } node = {0};
    CUfunction f;
    CUgraph g;
    CUgraphExec x;
    CUstream s;
    void *made;
    OK(cuModuleGetFunction(&f, m, "k1000"));
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamBeginCapture_v2(s, 0));
    launch(f, 1, s, 0);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    for (int i = 0; i < launches; i++)
        OK(cuGraphLaunch(x, s));
    node.f = f;
    for (int i = 0; i < 6; i++)
        node.sizes[i] = 1;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddKernelNode_v2(&made, g, NULL, 0, &node));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    for (int i = 0; i < launches; i++)
        OK(cuGraphLaunch(x, s));
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "", *file = argc > 2 ? argv[2] : "";
    int launches = argc > 3 ? atoi(argv[3]) : 3, copies = argc > 4 ? atoi(argv[4]) : 1;
    char info[64] = "untouched", error[64] = "untouched";
    int names[] = {3, 4, 5, 6, 0};
    void *values[] = {info, (void *)sizeof info, error, (void *)sizeof error, (void *)32};
    struct { unsigned magic, version; void *data, *name; } wrapper = {0x466243B1, 1, NULL, NULL};
    CUcontext c;
    CUmodule m = NULL;
    CUlibrary l = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    for (int i = 0; i < copies; i++) {
        m = NULL;
        if (!strcmp(way, "file"))
            OK(cuModuleLoad(&m, file));
        else if (!strcmp(way, "data") || !strcmp(way, "graph") || !strcmp(way, "killed") || !strcmp(way, "contexts"))
            OK(cuModuleLoadData(&m, read_all(file)));
        else if (!strcmp(way, "options"))
            OK(cuModuleLoadDataEx(&m, read_all(file), 5, names, values));
        else if (!strcmp(way, "fatbin"))
            OK(cuModuleLoadFatBinary(&m, read_all(file)));
        else if (!strcmp(way, "wrapper")) {
            wrapper.data = read_all(file);
            OK(cuModuleLoadData(&m, &wrapper));
        } else if (!strcmp(way, "library"))
            OK(cuLibraryLoadData(&l, read_all(file), names, values, 5, NULL, NULL, 0));
        else if (!strcmp(way, "library_file"))
            OK(cuLibraryLoadFromFile(&l, file, NULL, NULL, 0, NULL, NULL, 0));
        else
            return 2;
        if (l)
            of_library(l, launches);
        else if (!strcmp(way, "graph"))
            of_graph(m, launches);
        else
            of_module(m, launches);
        if (copies > 1)
            OK(cuModuleUnload(m));
    }
    if (!strcmp(way, "options") || !strcmp(way, "library"))
        printf("logs: \"%s\" %zu, \"%s\" %zu\n", info, (size_t)values[1], error, (size_t)values[3]);
    OK(cuCtxSynchronize());
    if (!strcmp(way, "contexts")) {
        OK(cuDevicePrimaryCtxRelease_v2(0));
        OK(cuCtxCreate_v2(&c, 0, 1));
        OK(cuModuleLoadData(&m, read_all(file)));
        of_module(m, launches);
        OK(cuCtxDestroy_v2(c));
    }
    fflush(stdout);
    if (!strcmp(way, "killed"))
        raise(SIGKILL);
    return 0;
}
