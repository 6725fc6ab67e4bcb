/* Loads code in each of the ways that there are, and launches its kernels k1000 and k2000: what it sees of them must be
 * the same whatever a tracer does to the code.
 *
 *   inside WAY FILE [LAUNCHES [COPIES]]
 *
 * INSIDE_FIRST is the name of the kernel in modules that is launched first, if not k1000.
 * It prints names of kernels, logs and errors. */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <dlfcn.h>
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
CUresult cuGraphAddNode(void **, CUgraph, const void *, size_t, void *);
CUresult cuGraphAddNode_v2(void **, CUgraph, const void *, const void *, size_t, void *);
CUresult cuGraphKernelNodeSetParams_v2(void *, const void *);
CUresult cuGraphGetNodes(CUgraph, void **, size_t *);
CUresult cuGraphKernelNodeGetParams(void *, void *);
CUresult cuGraphKernelNodeGetParams_v2(void *, void *);
CUresult cuGraphNodeGetParams(void *, void *);
CUresult cuGraphNodeSetParams(void *, void *);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, void *, const void *);
CUresult cuGraphExecNodeSetParams(CUgraphExec, void *, void *);
CUresult cuLinkCreate_v2(unsigned, int *, void **, void **);
CUresult cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **);
CUresult cuLinkAddFile_v2(void *, int, const char *, unsigned, int *, void **);
CUresult cuLinkComplete(void *, void **, size_t *);
CUresult cuLinkDestroy(void *);
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

/* Machine code that NVRTC makes of a source. */
static void *compiled(const char *source)
{
    void *nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW), *program = NULL;
    if (!nvrtc)
        exit(3);
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *) = dlsym(nvrtc, "nvrtcCreateProgram");
    int (*compile)(void *, int, const char *const *) = dlsym(nvrtc, "nvrtcCompileProgram");
    int (*size_of)(void *, size_t *) = dlsym(nvrtc, "nvrtcGetCUBINSize");
    int (*give)(void *, char *) = dlsym(nvrtc, "nvrtcGetCUBIN");
    int (*destroy)(void **) = dlsym(nvrtc, "nvrtcDestroyProgram");
    const char *options[] = {"-arch=sm_90"};
    size_t size = 0;
    OK(create(&program, source, "source.cu", 0, NULL, NULL));
    OK(compile(program, 1, options));
    OK(size_of(program, &size));
    char *cubin = malloc(size);
    OK(give(program, cubin));
    OK(destroy(&program));
    return cubin;
}

/* A function of nvJitLink, of this version of its header (`_13_0`; none: by its plain name). */
static void *jit(void *library, const char *name, const char *version)
{
    char full[64];
    snprintf(full, sizeof full, "%snvJitLink%s%s", *version ? "__" : "", name, version);
    void *found = dlsym(library, full);
    if (!found)
        exit(4);
    return found;
}

/* Machine code that nvJitLink links: of its library, a version, an option besides the architecture or "", and inputs, each with
 * its kind: `2=FILE` as bytes, `2@FILE` as a file. */
static void *linked(char **arguments)
{
    void *library = dlopen(arguments[0], RTLD_NOW), *link = NULL;
    if (!library)
        exit(3);
    const char *version = arguments[1], *options[] = {"-arch=sm_90", arguments[2]};
    int (*create)(void **, unsigned, const char *const *) = jit(library, "Create", version);
    int (*data)(void *, int, const void *, size_t, const char *) = jit(library, "AddData", version);
    int (*file)(void *, int, const char *) = jit(library, "AddFile", version);
    int (*complete)(void *) = jit(library, "Complete", version);
    int (*size_of)(void *, size_t *) = jit(library, "GetLinkedCubinSize", version);
    int (*give)(void *, char *) = jit(library, "GetLinkedCubin", version);
    int (*destroy)(void **) = jit(library, "Destroy", version);
    size_t size = 0;
    OK(create(&link, *arguments[2] ? 2 : 1, options));
    for (char **input = arguments + 3; *input; input++) {
        int kind = atoi(*input);
        const char *path = *input + strspn(*input, "0123456789") + 1;
        FILE *f = fopen(path, "r");
        static char bytes[1 << 20];
        if (!f)
            exit(2);
        if (path[-1] == '@')
            OK(file(link, kind, path));
        else
            OK(data(link, kind, bytes, fread(bytes, 1, sizeof bytes, f), strrchr(path, '/') + 1));
        fclose(f);
    }
    OK(complete(link));
    OK(size_of(link, &size));
    char *cubin = malloc(size);
    OK(give(link, cubin));
    OK(destroy(&link));
    return cubin;
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
    const char *first = getenv("INSIDE_FIRST");
    OK(cuModuleGetFunction(&a, m, first ? first : "k1000"));
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

struct kernel_node { CUfunction f; unsigned sizes[7]; void **params, **extra; CUkernel k; CUcontext c; };

/* A node that was captured with a library's kernel has that, and its function. */
static void of_captured(CUlibrary l)
{
    struct kernel_node old = {0}, node = {0};
    CUkernel k;
    CUfunction f;
    CUgraph g;
    CUgraphExec x;
    CUstream s;
    void *made = NULL;
    size_t count = 1;
    OK(cuLibraryGetKernel(&k, l, "k1000"));
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamBeginCapture_v2(s, 0));
    launch(k, 1, s, 0);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, &made, &count));
    OK(cuGraphKernelNodeGetParams(made, &old));
    OK(cuGraphKernelNodeGetParams_v2(made, &node));
    OK(cuKernelGetFunction(&f, k));
    printf("its kernel: %d %d %d, nothing behind: %d\n", old.f == f, node.f == f, node.k == k, old.k == NULL);
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, s));
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

struct any_node { int kind, reserved[3]; struct kernel_node kernel; char rest[256 - 16 - sizeof(struct kernel_node)]; };

static const char *name_in(void *node)
{
    struct kernel_node p = {0};
    struct any_node any = {0};
    const char *name = "?";
    OK(cuGraphKernelNodeGetParams_v2(node, &p));
    OK(cuGraphNodeGetParams(node, &any));
    OK(cuFuncGetName(&name, p.f));
    return p.f == any.kernel.f ? name : "others";
}

/* Nodes that are made and set by the functions for nodes of any kind, and others that are given another kernel later. */
static void of_nodes(CUmodule m)
{
    struct any_node any = {0};
    CUfunction a, b;
    CUgraph g;
    CUgraphExec x;
    void *first, *second;
    OK(cuModuleGetFunction(&a, m, "k1000"));
    OK(cuModuleGetFunction(&b, m, "k2000"));
    any.kernel.f = a;
    for (int i = 0; i < 6; i++)
        any.kernel.sizes[i] = 1;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddNode(&first, g, NULL, 0, &any));
    OK(cuGraphAddNode_v2(&second, g, NULL, NULL, 0, &any));
    printf("nodes: %s %s\n", name_in(first), name_in(second));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, NULL)); /* k1000, k1000 */
    any.kernel.f = b;
    OK(cuGraphExecKernelNodeSetParams_v2(x, first, &any.kernel));
    OK(cuGraphLaunch(x, NULL)); /* k2000, k1000 */
    OK(cuGraphExecNodeSetParams(x, second, &any));
    OK(cuGraphLaunch(x, NULL)); /* k2000, k2000 */
    OK(cuGraphKernelNodeSetParams_v2(first, &any.kernel));
    printf("nodes: %s %s\n", name_in(first), name_in(second));
    any.kernel.f = a;
    OK(cuGraphNodeSetParams(second, &any));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, NULL)); /* k2000, k1000 */
    any.kind = 1;
    printf("a copy: %d\n", cuGraphNodeSetParams(second, &any));
}

/* Links a file, once as bytes and once more as a file under another name; loads what comes out, and what was written of it. */
static void of_link(const char *file, const char *other, int launches)
{
    char info[64] = "untouched";
    int names[] = {3, 4};
    void *values[] = {info, (void *)sizeof info}, *link, *code;
    char *text = read_all(file);
    size_t size;
    CUmodule m;
    OK(cuLinkCreate_v2(2, names, values, &link));
    OK(cuLinkAddData_v2(link, 1, text, strlen(text) + 1, "first", 0, NULL, NULL));
    if (*other)
        OK(cuLinkAddFile_v2(link, 1, other, 0, NULL, NULL));
    OK(cuLinkComplete(link, &code, &size));
    printf("log: \"%s\"\n", info);
    OK(cuModuleLoadData(&m, code));
    of_module(m, launches);
    char *copy = malloc(size);
    memcpy(copy, code, size);
    OK(cuLinkDestroy(link));
    OK(cuModuleLoadData(&m, copy));
    of_module(m, launches);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "", *file = argc > 2 ? argv[2] : "";
    int of_jit = !strcmp(way, "jitlink"), launches = argc > 3 && !of_jit ? atoi(argv[3]) : 3, copies = argc > 4 && !of_jit ? atoi(argv[4]) : 1;
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
    if (!strcmp(way, "link")) {
        of_link(file, argc > 4 ? argv[4] : "", launches);
        OK(cuCtxSynchronize());
        return 0;
    }
    for (int i = 0; i < copies; i++) {
        m = NULL;
        if (!strcmp(way, "file"))
            OK(cuModuleLoad(&m, file));
        else if (!strcmp(way, "data") || !strcmp(way, "graph") || !strcmp(way, "nodes") || !strcmp(way, "killed") || !strcmp(way, "contexts"))
            OK(cuModuleLoadData(&m, read_all(file)));
        else if (!strcmp(way, "rtc"))
            OK(cuModuleLoadData(&m, compiled(read_all(file))));
        else if (of_jit)
            OK(cuModuleLoadData(&m, linked(argv + 3)));
        else if (!strcmp(way, "options"))
            OK(cuModuleLoadDataEx(&m, read_all(file), 5, names, values));
        else if (!strcmp(way, "fatbin"))
            OK(cuModuleLoadFatBinary(&m, read_all(file)));
        else if (!strcmp(way, "wrapper")) {
            wrapper.data = read_all(file);
            OK(cuModuleLoadData(&m, &wrapper));
        } else if (!strcmp(way, "library") || !strcmp(way, "captured"))
            OK(cuLibraryLoadData(&l, read_all(file), names, values, 5, NULL, NULL, 0));
        else if (!strcmp(way, "library_file"))
            OK(cuLibraryLoadFromFile(&l, file, NULL, NULL, 0, NULL, NULL, 0));
        else
            return 2;
        if (!strcmp(way, "captured"))
            of_captured(l);
        else if (l)
            of_library(l, launches);
        else if (!strcmp(way, "graph"))
            of_graph(m, launches);
        else if (!strcmp(way, "nodes"))
            of_nodes(m);
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
