/* Launches graphs in the ways that a tracer must distinguish; the first argument says which, the second how often. */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

CUresult cuInit(unsigned);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);
CUresult cuGraphCreate(CUgraph *, unsigned);
CUresult cuGraphAddKernelNode(void **, CUgraph, void *, size_t, const void *);
CUresult cuGraphAddMemAllocNode(void **, CUgraph, void *, size_t, void *);
CUresult cuGraphGetNodes(CUgraph, void **, size_t *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, void *, const void *);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec, void *, const void *, CUcontext);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, void *);
CUresult cuGraphNodeSetEnabled(CUgraphExec, void *, unsigned);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphDestroy(CUgraph);

#define OK(call)                                                                                   \
    do {                                                                                           \
        CUresult e_ = (call);                                                                      \
        if (e_) {                                                                                  \
            printf("%s:%d: %s is %d\n", __FILE__, __LINE__, #call, e_);                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct params { CUfunction function; unsigned sizes[7], pad; void **params, **extra; };
struct fill { uint64_t target, pitch; unsigned value, element; uint64_t width, height; };

static CUcontext context;
static CUstream stream, other;
static CUmodule module;
static CUdeviceptr memory;
static int rounds;

static CUfunction function(const char *name)
{
    CUfunction f;
    OK(cuModuleGetFunction(&f, module, name));
    return f;
}

static struct params of(const char *name, unsigned blocks)
{
    return (struct params){.function = function(name), .sizes = {blocks, 1, 1, 32, 1, 1, 0}};
}

static void launch(const char *name, CUstream s)
{
    OK(cuLaunchKernel(function(name), 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
}

/* A write, some kernels, a fill. */
static CUgraph captured(int kernels, const char *name)
{
    CUgraph g;
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuMemcpyHtoDAsync_v2(memory, "abcdefg", 8, stream));
    for (int i = 0; i < kernels; i++)
        launch(i % 3 ? name : "k2000", stream);
    OK(cuMemsetD8Async(memory, 1, 64, stream));
    OK(cuStreamEndCapture(stream, &g));
    return g;
}

static CUgraphExec executable(CUgraph g)
{
    CUgraphExec x;
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    return x;
}

static void run(CUgraphExec x, int times, int each)
{
    for (int i = 0; i < times; i++) {
        OK(cuGraphLaunch(x, stream));
        if (i % each == each - 1)
            OK(cuStreamSynchronize(stream));
    }
    OK(cuStreamSynchronize(stream));
}

static void end(CUgraphExec x, CUgraph g)
{
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
}

/* One node after the other. The graph may end before its executable. */
static void chain(void)
{
    CUgraph g = captured(20, "k300");
    CUgraphExec x = executable(g);
    OK(cuGraphDestroy(g));
    run(x, rounds, 5);
    OK(cuGraphExecDestroy(x));
}

/* Nodes that wait for several, and for none. */
static void diamond(void)
{
    CUgraph g;
    void *a, *b, *c, *d, *e;
    OK(cuGraphCreate(&g, 0));
    struct params first = of("k5000", 1), left = of("k1000", 2), right = of("k3000", 3), last = of("k700", 4);
    OK(cuGraphAddKernelNode(&a, g, NULL, 0, &first));
    OK(cuGraphAddKernelNode(&b, g, &a, 1, &left));
    OK(cuGraphAddKernelNode(&c, g, &a, 1, &right));
    OK(cuGraphAddKernelNode(&d, g, (void *[]){b, c}, 2, &last));
    OK(cuGraphAddKernelNode(&e, g, NULL, 0, &right));
    CUgraphExec x = executable(g);
    run(x, rounds, 1);
    end(x, g);
}

/* Nodes that wait for several, and run one after the other nevertheless. */
static void row(void)
{
    CUgraph g;
    void *a, *b, *c, *d;
    OK(cuGraphCreate(&g, 0));
    struct params first = of("k5000", 1), left = of("k1000", 2), right = of("k3000", 3), last = of("k700", 4);
    OK(cuGraphAddKernelNode(&a, g, NULL, 0, &first));
    OK(cuGraphAddKernelNode(&b, g, &a, 1, &left));
    OK(cuGraphAddKernelNode(&c, g, (void *[]){a, b}, 2, &right));
    OK(cuGraphAddKernelNode(&d, g, (void *[]){a, b, c}, 3, &last));
    CUgraphExec x = executable(g);
    run(x, rounds, 1);
    end(x, g);
}

/* Commands of the same kinds as nodes, which take longer. */
static void beside(void)
{
    CUgraph g = captured(20, "k300");
    CUgraphExec x = executable(g);
    OK(cuMemsetD8Async(memory, 1, 4096, stream));
    OK(cuMemcpyHtoDAsync_v2(memory, "abcdefg", 8, stream));
    launch("k2000", stream);
    OK(cuStreamSynchronize(stream));
    run(x, rounds, 5);
    end(x, g);
}

/* Nodes are changed before the first launch, and later. */
static void set(void)
{
    CUgraph g = captured(6, "k300");
    void *nodes[8];
    size_t count = 8;
    OK(cuGraphGetNodes(g, nodes, &count));
    CUgraphExec x = executable(g);
    struct params first = of("k4000", 7), then = of("k1500", 9);
    struct fill fill = {.target = memory, .element = 4, .width = 5, .height = 1};
    OK(cuGraphExecKernelNodeSetParams(x, nodes[1], &first));
    run(x, rounds, 2);
    for (int i = 0; i < rounds; i++) {
        OK(cuGraphExecKernelNodeSetParams(x, nodes[2], i % 2 ? &first : &then));
        OK(cuGraphExecMemsetNodeSetParams(x, nodes[7], &fill, context));
        fill.width = i % 7 + 1;
        run(x, 1, 1);
    }
    end(x, g);
}

/* An executable becomes that of another graph: once, and before each launch. */
static void update(void)
{
    CUgraph g = captured(6, "k300"), next = captured(6, "k900"), unlike = captured(7, "k900");
    CUgraphExec x = executable(g);
    long info[3];
    run(x, rounds, 2);
    OK(cuGraphExecUpdate_v2(x, next, info));
    run(x, rounds, 2);
    if (cuGraphExecUpdate_v2(x, unlike, info) != 910)
        exit(1);
    run(x, rounds, 2);
    for (int i = 0; i < rounds; i++) {
        OK(cuGraphExecUpdate_v2(x, i % 2 ? g : next, info));
        run(x, 1, 1);
    }
    end(x, g);
}

static void enabled(void)
{
    CUgraph g = captured(6, "k300");
    void *nodes[8];
    size_t count = 8;
    OK(cuGraphGetNodes(g, nodes, &count));
    CUgraphExec x = executable(g);
    run(x, rounds, 1);
    OK(cuGraphNodeSetEnabled(x, nodes[2], 0));
    OK(cuGraphNodeSetEnabled(x, nodes[7], 0));
    run(x, rounds, 1);
    OK(cuGraphNodeSetEnabled(x, nodes[2], 1));
    run(x, rounds, 1);
    end(x, g);
}

/* One executable in two streams: its launches do not run at the same time. */
static void streams(void)
{
    CUgraph g = captured(4, "k30000");
    CUgraphExec x = executable(g);
    for (int i = 0; i < rounds; i++) {
        for (int j = 0; j < 3; j++)
            OK(cuGraphLaunch(x, i % 2 ? other : stream));
        if (i % 4 == 3)
            OK(cuCtxSynchronize());
    }
    OK(cuCtxSynchronize());
    end(x, g);
}

/* Graphs end while they run. */
static void destroy(void)
{
    for (int i = 0; i < rounds; i++) {
        CUgraph g = captured(5, "k20000");
        CUgraphExec x = executable(g);
        for (int j = 0; j < 3; j++)
            OK(cuGraphLaunch(x, stream));
        end(x, g);
    }
    OK(cuStreamSynchronize(stream));
}

/* Memory of the graph's own. */
static void alloc(void)
{
    void *node, *nodes[10];
    CUgraph g = captured(6, "k300");
    OK(cuGraphGetNodes(g, nodes, &(size_t){8}));
    OK(cuGraphAddMemAllocNode(&node, g, &nodes[7], 1, NULL));
    CUgraphExec x = executable(g);
    run(x, rounds, 5);
    end(x, g);
}

/* The context ends before the graphs that ran in it. */
static void contexts(void)
{
    for (int i = 0; i < 3; i++) {
        CUgraph g = captured(6, "k300");
        CUgraphExec x = executable(g);
        run(x, rounds, 5);
        OK(cuGraphLaunch(x, stream));
        OK(cuCtxDestroy_v2(context));
        OK(cuCtxCreate_v2(&context, 0, 0));
        OK(cuStreamCreate(&stream, 1));
        OK(cuModuleLoadData(&module, "code"));
        OK(cuMemAlloc_v2(&memory, 4096));
        end(x, g);
    }
}

/* A child has none of its parent's graphs, and ends. */
static void forked(void)
{
    CUgraph g = captured(6, "k300");
    CUgraphExec x = executable(g);
    run(x, rounds, 5);
    OK(cuGraphLaunch(x, stream));
    pid_t child = fork();
    if (!child) {
        cuGraphLaunch(x, stream);
        cuGraphExecDestroy(x);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    run(x, rounds, 5);
    end(x, g);
    if (status)
        exit(1);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"chain", chain}, {"diamond", diamond}, {"row", row}, {"beside", beside}, {"set", set}, {"update", update}, {"enabled", enabled},
        {"streams", streams}, {"destroy", destroy}, {"alloc", alloc}, {"contexts", contexts}, {"fork", forked},
    };
    rounds = argc > 2 ? atoi(argv[2]) : 100;
    for (size_t i = 0; argc > 1 && i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, argv[1])) {
            OK(cuInit(0));
            OK(cuCtxCreate_v2(&context, 0, 0));
            OK(cuStreamCreate(&stream, 1));
            OK(cuStreamCreate(&other, 1));
            OK(cuModuleLoadData(&module, "code"));
            OK(cuMemAlloc_v2(&memory, 4096));
            all[i].run();
            printf("%s done\n", argv[1]);
            return 0;
        }
    return 2;
}
