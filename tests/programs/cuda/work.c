/* Gives devices work in the ways that a tracer must distinguish; the first argument says
 * which. It checks what it gets back: a tracer must not change it.
 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

CUresult cuInit(unsigned);
CUresult cuDeviceGetCount(int *);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxPopCurrent_v2(CUcontext *);
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamSynchronize_ptsz(CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuGraphGetNodes(CUgraph, void **, size_t *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphDestroy(CUgraph);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocHost_v2(void **, size_t);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void *);
CUresult cuStreamQuery(CUstream);
CUresult cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemcpyAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream, void **, void **);

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call)                                                                                   \
    do {                                                                                           \
        CUresult ok_ = (call);                                                                     \
        if (ok_) {                                                                                 \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, ok_);                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static CUmodule module;
static int argument_count;
static char **arguments;

/* Code for a real device: a kernel "kN" takes N ns, "fault" touches what it must not. The
 * fake driver does not read it, and simulates what the names say. */
static const char *code(void)
{
    static const char *const names[] = {"plain", "rare", "k300", "k500", "k1500", "k2000", "k3000",
                                        "k4000", "k7000", "k9000", "k20000", "k1000000", "k5000000", "k10000000", "k1000000000"};
    enum { NAMES = sizeof names / sizeof *names };
    static char text[65536];
    char name[32];
    size_t at = snprintf(text, sizeof text, ".version 7.0\n.target sm_70\n.address_size 64\n"
                         ".visible .entry fault() {\n.reg .u64 %%a;\nmov.u64 %%a, 16;\n"
                         "st.global.u64 [%%a], %%a;\nret;\n}\n");
    for (int i = 0; i < NAMES + 20; i++) {
        snprintf(name, sizeof name, "k%d", 1000 + i - NAMES);
        const char *n = i < NAMES ? names[i] : name;
        at += snprintf(text + at, sizeof text - at,
                       ".visible .entry %s() {\n.reg .u64 %%a, %%b;\n.reg .pred %%p;\n"
                       "mov.u64 %%a, %%globaltimer;\nadd.u64 %%a, %%a, %d;\nagain:\n"
                       "mov.u64 %%b, %%globaltimer;\nsetp.lt.u64 %%p, %%b, %%a;\n@%%p bra again;\nret;\n}\n",
                       n, n[0] == 'k' ? atoi(n + 1) : 1000);
    }
    return text;
}

static CUfunction function(const char *name)
{
    CUfunction f;
    if (!module)
        OK(cuModuleLoadData(&module, code()));
    OK(cuModuleGetFunction(&f, module, name));
    return f;
}

static void launch(CUfunction f, unsigned blocks, unsigned threads, CUstream s)
{
    OK(cuLaunchKernel(f, blocks, 2, 1, threads, 1, 1, 64, s, NULL, NULL));
}

/* Two streams on each of two devices, with copies and fills. */
static void streams(void)
{
    int count = 0;
    OK(cuDeviceGetCount(&count));
    for (int d = 0; d < 2 && d < count; d++) {
        CUcontext c;
        CUstream s[2];
        CUdeviceptr a, b;
        char host[4096], back[4096];
        void *pinned;
        module = NULL;
        OK(cuCtxCreate_v2(&c, 0, d));
        OK(cuStreamCreate(&s[0], 1));
        OK(cuStreamCreate(&s[1], 0));
        OK(cuMemAlloc_v2(&a, sizeof host));
        OK(cuMemAlloc_v2(&b, sizeof host));
        OK(cuMemAllocHost_v2(&pinned, sizeof host));
        memset(host, 42, sizeof host);
        OK(cuMemcpyHtoD_v2(a, host, sizeof host));
        for (int i = 0; i < 50; i++) {
            launch(function("k2000"), 3, 32, s[0]);
            launch(function("k7000"), 5, 64, s[1]);
            launch(function("plain"), 1, 1, NULL);
        }
        OK(cuMemsetD8Async(b, 7, 100, s[0]));
        OK(cuMemcpyAsync(b, a, 2048, s[0]));
        OK(cuMemcpyHtoDAsync_v2(b, pinned, 128, s[1]));
        OK(cuMemcpyDtoHAsync_v2(pinned, a, 256, s[1]));
        OK(cuStreamSynchronize(s[0]));
        OK(cuStreamSynchronize(s[1]));
        OK(cuMemcpyDtoH_v2(back, a, sizeof back));
        CHECK(!memcmp(host, back, sizeof host));
        /* Refused: no command. */
        CHECK(cuLaunchKernel(function("k2000"), 0, 1, 1, 1, 1, 1, 0, s[0], NULL, NULL) == 1);
        OK(cuCtxSynchronize());
        OK(cuStreamDestroy_v2(s[0]));
    }
}

/* Sizes that say on which of two devices memory is: by a context of its own, and by its primary one. */
static void memory(void)
{
    CUcontext c[4];
    CUdeviceptr p;
    for (int d = 0; d < 2; d++) {
        OK(cuCtxCreate_v2(&c[d], 0, d));
        OK(cuDevicePrimaryCtxRetain(&c[2 + d], d));
    }
    OK(cuCtxSetCurrent(c[1]));
    OK(cuMemAlloc_v2(&p, 2000));
    OK(cuCtxSetCurrent(c[0]));
    OK(cuMemAlloc_v2(&p, 100));
    OK(cuCtxSetCurrent(c[2]));
    OK(cuMemAlloc_v2(&p, 30));
    OK(cuMemFree_v2(p));
    OK(cuCtxSetCurrent(c[3]));
    OK(cuMemAlloc_v2(&p, 5000));
    OK(cuMemAlloc_v2(&p, 400));
}

/* The context of the stream is not the one that is current. */
static void elsewhere(void)
{
    CUcontext a, b, now;
    CUstream s;
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuStreamCreate(&s, 1));
    CUfunction f = function("k3000");
    int count = 0;
    OK(cuDeviceGetCount(&count));
    OK(cuCtxCreate_v2(&b, 0, count > 1));
    for (int i = 0; i < 10; i++)
        launch(f, 1, 1, s);
    OK(cuCtxGetCurrent(&now));
    CHECK(now == b);
    OK(cuStreamSynchronize(s));
    OK(cuCtxGetCurrent(&now));
    CHECK(now == b);
}

/* Two contexts of one device have one clock. */
static void together(void)
{
    CUcontext c[2];
    CUfunction f[2];
    for (int i = 0; i < 2; i++) {
        module = NULL;
        OK(cuCtxCreate_v2(&c[i], 0, 0));
        f[i] = function("k4000");
    }
    for (int i = 0; i < 60; i++) {
        OK(cuCtxSetCurrent(c[i % 2]));
        launch(f[i % 2], 1, 1, NULL);
        launch(f[i % 2], 1, 1, NULL);
        if (i % 6 > 3)
            OK(cuCtxSynchronize());
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(c[i]));
        OK(cuCtxSynchronize());
    }
}

/* What is captured becomes part of the graph, and nothing else does. */
static void capture(void)
{
    CUcontext c;
    CUstream s, other;
    CUgraph g;
    CUgraphExec x;
    size_t count = 0;
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamCreate(&other, 1));
    CUfunction f = function("k4000");
    launch(f, 1, 1, s);
    OK(cuStreamSynchronize(s));
    OK(cuStreamBeginCapture_v2(s, 0));
    for (int i = 0; i < 5; i++)
        launch(f, 1, 1, s);
    /* Another stream goes on meanwhile, often enough for the tracer to look. */
    for (int i = 0; i < 100; i++)
        launch(f, 1, 1, other);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, NULL, &count));
    CHECK(count == 5);
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    for (int i = 0; i < 7; i++)
        OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
    OK(cuCtxSynchronize());
}

static void *on_thread(void *context)
{
    CUdeviceptr a;
    OK(cuCtxSetCurrent(context));
    CUfunction f = function("k1500");
    OK(cuMemAlloc_v2(&a, 64));
    for (int i = 0; i < 20; i++)
        OK(cuLaunchKernel_ptsz(f, 1, 1, 1, 8, 1, 1, 0, NULL, NULL, NULL));
    OK(cuMemsetD8Async_ptsz(a, 1, 64, CU_STREAM_PER_THREAD));
    OK(cuMemcpyHtoD_v2_ptds(a, "abc", 4));
    OK(cuStreamSynchronize_ptsz(NULL));
    return NULL;
}

/* Each thread has a default stream of its own; the legacy one is another. */
static void per_thread(void)
{
    CUcontext c;
    pthread_t t[2];
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    launch(function("k1500"), 1, 1, CU_STREAM_LEGACY);
    for (int i = 0; i < 2; i++) {
        CHECK(!pthread_create(&t[i], NULL, on_thread, c));
        CHECK(!pthread_join(t[i], NULL));
    }
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* Contexts and streams end with work in flight. */
static void destroy(void)
{
    CUcontext c;
    CUstream s;
    for (int round = 0; round < 3; round++) {
        module = NULL;
        OK(cuCtxCreate_v2(&c, 0, 0));
        OK(cuStreamCreate(&s, 1));
        for (int i = 0; i < 10; i++)
            launch(function("k1000"), 1, 1, s);
        OK(cuStreamDestroy_v2(s));
        OK(cuStreamCreate(&s, 1));
        for (int i = 0; i < 10; i++)
            launch(function("k1000000"), 1, 1, s);
        OK(cuCtxDestroy_v2(c));
    }
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxPushCurrent_v2(c));
    module = NULL;
    launch(function("k1000000"), 1, 1, NULL);
    OK(cuDevicePrimaryCtxReset_v2(0));
}

/* After an illegal access every call fails, to the end. */
static void fault(void)
{
    CUcontext c;
    OK(cuCtxCreate_v2(&c, 0, 0));
    CUfunction good = function("k1000"), bad = function("fault");
    for (int i = 0; i < 5; i++)
        launch(good, 1, 1, NULL);
    OK(cuCtxSynchronize());
    launch(bad, 1, 1, NULL);
    CHECK(cuCtxSynchronize() == 700);
    for (int i = 0; i < 40; i++)
        CHECK(cuLaunchKernel(good, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 700);
    CHECK(cuCtxSynchronize() == 700);
}

static void *many(void *arg)
{
    CUcontext c = arg;
    CUstream s;
    OK(cuCtxSetCurrent(c));
    OK(cuStreamCreate(&s, 1));
    CUfunction f = function("k500");
    for (int i = 0; i < 1000; i++) {
        launch(f, 1, 1, s);
        if (i % 100 == 99)
            OK(cuStreamSynchronize(s));
    }
    OK(cuStreamDestroy_v2(s));
    return NULL;
}

static void threads(void)
{
    CUcontext c;
    pthread_t t[8];
    OK(cuCtxCreate_v2(&c, 0, 0));
    function("k500");
    for (int i = 0; i < 8; i++)
        CHECK(!pthread_create(&t[i], NULL, many, c));
    for (int i = 0; i < 8; i++)
        CHECK(!pthread_join(t[i], NULL));
    OK(cuCtxSynchronize());
}

/* One kernel is launched often, one seldom; `rare` has one launch. */
static void sampled(void)
{
    CUcontext c;
    OK(cuCtxCreate_v2(&c, 0, 0));
    CUfunction often = function("k300"), seldom = function("k9000");
    for (int i = 0; i < 1000; i++) {
        launch(often, 1, 1, NULL);
        if (i % 25 == 0)
            launch(seldom, 1, 1, NULL);
        if (i % 50 == 49)
            OK(cuCtxSynchronize());
    }
    launch(function("rare"), 1, 1, NULL);
    OK(cuCtxSynchronize());
}

/* Some seconds, so that the clocks have to be compared again. */
static void slowly(void)
{
    CUcontext c;
    OK(cuCtxCreate_v2(&c, 0, 0));
    CUfunction f = function("k20000");
    for (int i = 0; i < 250; i++) {
        launch(f, 1, 1, NULL);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        OK(cuCtxSynchronize());
    }
}

/* Code comes and goes, and its addresses come again. */
static void modules(void)
{
    CUcontext c;
    OK(cuCtxCreate_v2(&c, 0, 0));
    for (int i = 0; i < 20; i++) {
        char name[32];
        module = NULL;
        snprintf(name, sizeof name, "k%d", 1000 + i);
        launch(function(name), 1, 1, NULL);
        OK(cuCtxSynchronize());
        OK(cuModuleUnload(module));
    }
}

/* A child of a process that uses the driver can't; one of a process that does not yet, can. */
static void forked(void)
{
    for (int before = 0; before < 2; before++) {
        CUcontext c;
        pid_t child = fork();
        if (child == 0) {
            if (before == 0) {
                OK(cuInit(0));
                OK(cuCtxCreate_v2(&c, 0, 0));
                launch(function("k1000"), 1, 1, NULL);
                OK(cuCtxSynchronize());
            } else {
                CHECK(cuLaunchKernel(function("k1000"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != 0);
            }
            exit(0);
        }
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child);
        if (before == 1)
            CHECK(WIFEXITED(status));
        else
            CHECK(status == 0);
        if (before == 0) {
            OK(cuInit(0));
            OK(cuCtxCreate_v2(&c, 0, 0));
            for (int i = 0; i < 3; i++)
                launch(function("k1000"), 1, 1, NULL);
            OK(cuCtxSynchronize());
            launch(function("k1000"), 1, 1, NULL);
        }
    }
    OK(cuCtxSynchronize());
}

static int argument(int number, int otherwise)
{
    return number < argument_count ? atoi(arguments[number]) : otherwise;
}

/* A graph of so many nodes, launched so many times. */
static void graph(void)
{
    CUcontext c;
    CUstream s;
    CUgraph g;
    CUgraphExec x;
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuStreamCreate(&s, 1));
    CUfunction f = function("k300");
    OK(cuStreamBeginCapture_v2(s, 0));
    for (int i = argument(2, 1000); i > 0; i--)
        launch(f, 1, 1, s);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    for (int i = argument(3, 10); i > 0; i--)
        OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
}

/* Copies whose kind of memory only their addresses show. */
static void copies(void)
{
    CUcontext c;
    CUstream s;
    CUdeviceptr device, managed;
    void *pinned;
    static char pageable[4096];
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuStreamCreate(&s, 1));
    OK(cuMemAlloc_v2(&device, sizeof pageable));
    OK(cuMemAllocManaged(&managed, sizeof pageable, 1));
    OK(cuMemAllocHost_v2(&pinned, sizeof pageable));
    CUdeviceptr all[] = {device, managed, (CUdeviceptr)pinned, (CUdeviceptr)pageable};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (i != j)
                OK(cuMemcpyAsync(all[i], all[j], 64 * i + j + 1, s));
    OK(cuMemcpyHtoDAsync_v2(device, pinned, 100, s));
    OK(cuMemcpyHtoDAsync_v2(device, pageable, 101, s));
    OK(cuMemcpyDtoHAsync_v2(pinned, device, 102, s));
    OK(cuMemcpyDtoHAsync_v2(pageable, device, 103, s));
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy_v2(s));
}

/* Short-lived streams: what they did is reported when they are gone. */
static void churn(void)
{
    CUcontext c;
    OK(cuCtxCreate_v2(&c, 0, 0));
    CUfunction f = function("k300");
    for (int i = 0; i < 300; i++) {
        CUstream s;
        OK(cuStreamCreate(&s, 1));
        launch(f, 1, 1, s);
        OK(cuStreamSynchronize(s));
        OK(cuStreamDestroy_v2(s));
    }
}

static void killed(void)
{
    CUcontext c;
    OK(cuCtxCreate_v2(&c, 0, 0));
    CUfunction f = function("k1000");
    for (int i = 0; i < 1000; i++) {
        launch(f, 1, 1, NULL);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    raise(SIGKILL);
}

static CUfunction kernel;

static void in_stream(void *data)
{
    CHECK(cuStreamQuery(data) == 800);
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 800);
}

static void last_in_stream(void *data)
{
    (void)data;
    exit(0);
}

/* What the driver calls may ask it nothing, but may end the program. */
static void callback(void)
{
    CUcontext c;
    CUstream s;
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuStreamCreate(&s, 1));
    launch(kernel = function("k1000"), 1, 1, s);
    OK(cuLaunchHostFunc(s, in_stream, s));
    launch(kernel, 1, 1, s);
    OK(cuStreamSynchronize(s));
    launch(kernel, 1, 1, s);
    OK(cuLaunchHostFunc(s, last_in_stream, s));
    CHECK(0);
}

static void unwaited(void)
{
    CUcontext c;
    CUstream s;
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuStreamCreate(&s, 1));
    for (int i = 0; i < 10; i++)
        launch(function("k1000"), 1, 1, NULL);
    OK(cuCtxSynchronize());
    for (int i = 0; i < 5; i++)
        launch(function("k1000000000"), 1, 1, s);
}

/* Launches behind one that takes a while: none of them has ended when the last is made. */
static void inflight(void)
{
    CUcontext c;
    CUstream s;
    int n = argument_count > 2 ? atoi(arguments[2]) : 60000;
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuStreamCreate(&s, 1));
    CUfunction slow = function("k1000000000"), f = function("k300");
    launch(f, 1, 1, s);
    OK(cuStreamSynchronize(s));
    for (int i = 0; i < 3; i++)
        launch(slow, 1, 1, s);
    for (int i = 0; i < n; i++)
        launch(f, 1, 1, s);
    OK(cuStreamSynchronize(s));
    OK(cuCtxDestroy_v2(c));
}

/* Waits for one stream while another has work, and for the default streams of two contexts. */
static void waits(void)
{
    CUcontext c[2];
    CUfunction f[2];
    CUstream s, other;
    for (int i = 0; i < 2; i++) {
        module = NULL;
        OK(cuCtxCreate_v2(&c[i], 0, 0));
        f[i] = function("k1000000");
    }
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamCreate(&other, 1));
    for (int i = 0; i < 20; i++)
        launch(f[1], 1, 1, other);
    launch(f[1], 1, 1, s);
    OK(cuStreamSynchronize(s));
    OK(cuStreamSynchronize(other));
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(c[i]));
        launch(f[i], 1, 1, NULL);
        OK(cuStreamSynchronize(i ? CU_STREAM_LEGACY : NULL));
    }
    printf("streams %p %p contexts %p %p\n", (void *)s, (void *)other, (void *)c[0], (void *)c[1]);
}

/* The first of two processes fills the device for a second, and signals the second one, which then wants it, too, or
 * another device. The second reads what the first one says: `work shared first | work shared second 0`. */
static void shared(void)
{
    CUcontext c;
    CUstream s;
    char said[16];
    int first = argument_count > 2 && !strcmp(arguments[2], "first");
    OK(cuCtxCreate_v2(&c, 0, argument_count > 3 ? atoi(arguments[3]) : 0));
    OK(cuStreamCreate(&s, 1));
    CUfunction f = function(first ? "k10000000" : "k5000000");
    if (!first)
        CHECK(fgets(said, sizeof said, stdin) && !strcmp(said, "full\n"));
    for (int i = 0; i < (first ? 100 : 5); i++) {
        launch(f, 1, 1, s);
        if (!first)
            OK(cuStreamSynchronize(s));
    }
    if (first)
        CHECK(puts("full") >= 0 && fflush(stdout) == 0);
    OK(cuStreamSynchronize(s));
    OK(cuCtxDestroy_v2(c));
}

int main(int argc, char **argv)
{
    argument_count = argc;
    arguments = argv;
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"streams", streams}, {"memory", memory}, {"elsewhere", elsewhere}, {"together", together}, {"capture", capture},
        {"per_thread", per_thread}, {"destroy", destroy}, {"fault", fault},
        {"threads", threads}, {"sampled", sampled}, {"slowly", slowly}, {"modules", modules},
        {"fork", forked}, {"graph", graph}, {"copies", copies}, {"churn", churn},
        {"killed", killed}, {"unwaited", unwaited}, {"callback", callback}, {"inflight", inflight},
        {"waits", waits}, {"shared", shared},
    };
    const char *wanted = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, wanted)) {
            if (all[i].run != forked)
                OK(cuInit(0));
            all[i].run();
            printf("%s done\n", wanted);
            return 0;
        }
    return 2;
}
