/* Marks and ranges of ROCTX. Built linked to a library of ROCTX, or with -DLATE, which opens that library by its
 * name, the first argument, and asks it for each function.
 *
 *   calls [LIBRARY] all        everything once, each answer on a line of its own
 *   calls [LIBRARY] steps      four ranges called step N, and one of each thread, with a mark inside
 *   calls [LIBRARY] started    the same with ranges that another thread stops
 *   calls [LIBRARY] paused     a mark before, between and behind a pause and a resume of the profiler
 *   calls [LIBRARY] threads    eight threads at once, each a hundred ranges in each other
 *   calls [LIBRARY] fork       a range before a fork, in the child, and after it
 *   calls [LIBRARY] device     twelve steps that run a kernel of OpenCL each
 *   calls [LIBRARY] loop N     N pushes and pops; says what one of both takes
 *
 * rocprofiler-sdk's library has functions that roctracer's has not: "all" and "paused" call those that there are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef DEVICE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

struct hsa_agent_s {
    uint64_t handle;
};

/* Result, name, parameters: those that each library has, then those of one only. */
#define BOTH(F)                                   \
    F(void, roctxMarkA, (const char *))           \
    F(int, roctxRangePushA, (const char *))       \
    F(int, roctxRangePop, (void))                 \
    F(uint64_t, roctxRangeStartA, (const char *)) \
    F(void, roctxRangeStop, (uint64_t))
#define ONE(F)                                                        \
    F(uint32_t, roctx_version_major, (void))                          \
    F(uint32_t, roctx_version_minor, (void))                          \
    F(int, roctxProfilerPause, (uint64_t))                            \
    F(int, roctxProfilerResume, (uint64_t))                           \
    F(int, roctxNameOsThread, (const char *))                         \
    F(int, roctxNameHsaAgent, (const char *, const struct hsa_agent_s *)) \
    F(int, roctxNameHipDevice, (const char *, int))                   \
    F(int, roctxNameHipStream, (const char *, const void *))          \
    F(int, roctxGetThreadId, (uint64_t *))

#ifdef LATE
#define VARIABLE(type, name, parameters) static type(*name) parameters;
BOTH(VARIABLE)
ONE(VARIABLE)

static void find(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define ASK(type, name, parameters) *(void **)&name = dlsym(library, #name);
    BOTH(ASK)
    ONE(ASK)
    if (!roctxRangePushA) {
        fprintf(stderr, "%s has no ROCTX\n", path);
        exit(1);
    }
}
#else
#define LINKED(type, name, parameters) extern type name parameters;
#define WEAK(type, name, parameters) extern type name parameters __attribute__((weak));
BOTH(LINKED)
ONE(WEAK)
#endif

static void show(const char *what, long long answer)
{
    printf("%s %lld\n", what, answer);
}

static void *in_thread(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, argument);
    pthread_join(thread, &result);
    return result;
}

static void *stop(void *id)
{
    roctxRangeStop(*(uint64_t *)id);
    return NULL;
}

static void *other(void *id)
{
    show("other push", roctxRangePushA("other"));
    show("other pop", roctxRangePop());
    show("other pop of nothing", roctxRangePop());
    return stop(id);
}

static void names(void)
{
    const struct hsa_agent_s agent = {0x77};
    int stream;
    uint64_t thread = 0;
    show("name thread", roctxNameOsThread("main of it"));
    show("name agent", roctxNameHsaAgent("an agent", &agent));
    show("name device", roctxNameHipDevice("a device", 3));
    show("name stream", roctxNameHipStream("a stream", &stream));
    show("thread id", roctxGetThreadId(&thread));
    show("its own", thread == (uint64_t)syscall(SYS_gettid));
    show("pause", roctxProfilerPause(0));
    show("resume", roctxProfilerResume(0));
}

static void all(void)
{
    errno = 77;
    if (roctx_version_major) {
        show("major", roctx_version_major());
        show("minor", roctx_version_minor());
    }
    if (roctxNameOsThread)
        names();
    roctxMarkA("a mark");
    roctxMarkA("");
    roctxMarkA("\xc3\xbc" "ber");
    show("push", roctxRangePushA("outer"));
    show("push", roctxRangePushA("inner"));
    uint64_t across = roctxRangeStartA("across threads");
    uint64_t second = roctxRangeStartA("overlapping");
    in_thread(other, &across);
    show("pop", roctxRangePop());
    show("pop", roctxRangePop());
    show("pop of nothing", roctxRangePop());
    roctxRangeStop(second);
    show("ids", across != 0 && second != 0 && across != second);
    roctxRangePushA("never popped");
    show("errno", errno);
}

static void *step(void *name)
{
    roctxRangePushA(name);
    roctxMarkA("inside");
    roctxRangePushA("inner");
    roctxRangePop();
    roctxRangePop();
    return NULL;
}

static void steps(void)
{
    char name[16];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "step %d", i);
        step(name);
        roctxMarkA("between");
    }
    in_thread(step, "step of a thread");
}

static void started(void)
{
    char name[16];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "step %d", i);
        uint64_t id = roctxRangeStartA(name);
        roctxMarkA("inside");
        in_thread(stop, &id);
        roctxMarkA("between");
    }
}

static void paused(void)
{
    roctxMarkA("before");
    roctxProfilerResume(0);
    roctxMarkA("recorded");
    uint64_t thread = 0;
    roctxGetThreadId(&thread);
    roctxProfilerPause(thread);
    roctxMarkA("recorded, too");
    roctxProfilerPause(0);
    roctxMarkA("behind");
}

static void *hundred(void *name)
{
    for (int i = 0; i < 100; i++)
        if (roctxRangePushA(name) != i)
            abort();
    for (int i = 100; i-- > 0;)
        if (roctxRangePop() != i)
            abort();
    return NULL;
}

static void threads(void)
{
    pthread_t all[8];
    char names[8][16];
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof names[i], "thread %d", i);
        pthread_create(&all[i], NULL, hundred, names[i]);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], NULL);
}

static void forked(void)
{
    roctxRangePushA("before");
    pid_t child = fork();
    if (child == 0) {
        roctxRangePushA("child");
        show("child pop", roctxRangePop());
        show("child pop", roctxRangePop());
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    roctxRangePushA("after");
    show("child", status);
    show("pop", roctxRangePop());
    show("pop", roctxRangePop());
}

static void loop(long count)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < count; i++) {
        roctxRangePushA("loop");
        roctxRangePop();
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("%.1f ns\n", ns / (double)count);
}

#ifdef DEVICE
static void device(void)
{
    const char *text = "kernel void work(global int *a) { for (int i = 0; i < 20000; i++) a[get_global_id(0)] = a[get_global_id(0)] * 3 + (i ^ 5); }";
    cl_platform_id platform;
    cl_device_id id;
    cl_int error = clGetPlatformIDs(1, &platform, NULL);
    if (error || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL))
        exit(1);
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &error);
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &error);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    if (error || clBuildProgram(program, 1, &id, "", NULL, NULL))
        exit(1);
    cl_kernel kernel = clCreateKernel(program, "work", &error);
    size_t size = 256;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size * sizeof(cl_int), NULL, &error);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    char name[16];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "step %d", i);
        roctxRangePushA(name);
        if (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL) || clFinish(queue))
            exit(1);
        roctxRangePop();
    }
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}
#endif

int main(int argc, char **argv)
{
#ifdef LATE
    if (argc < 2)
        return 2;
    find(argv[1]);
    argc--, argv++;
#endif
    const char *part = argc > 1 ? argv[1] : "all";
    if (!strcmp(part, "all"))
        all();
    else if (!strcmp(part, "steps"))
        steps();
    else if (!strcmp(part, "started"))
        started();
    else if (!strcmp(part, "paused"))
        paused();
    else if (!strcmp(part, "threads"))
        threads();
    else if (!strcmp(part, "fork"))
        forked();
    else if (!strcmp(part, "loop") && argc > 2)
        loop(atol(argv[2]));
#ifdef DEVICE
    else if (!strcmp(part, "device"))
        device();
#endif
    else
        return 2;
    return 0;
}
