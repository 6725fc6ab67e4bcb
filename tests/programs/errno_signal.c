/* What surrounds a call must be as a bare call leaves it: errno, the floating-point
 * environment, the signal mask, the alternate signal stack. Each call is made with all
 * of them set to unusual values, and what it changed is printed; two runs, one of them
 * traced, must print the same.
 */
#include "cl_util.h"
#include <fenv.h>
#include <signal.h>

static struct dev d;
static cl_command_queue queue;
static cl_program program;
static cl_kernel kernel;
static cl_mem buffer;
static cl_event event;

static const char *source = "__kernel void one(__global int *v) { v[get_global_id(0)] = 1; }\n";

enum { ODD_ERRNO = 4242 };

struct surroundings {
    int rounding, exceptions;
    sigset_t mask;
    stack_t stack;
};

static void look(struct surroundings *s)
{
    s->rounding = fegetround();
    s->exceptions = fetestexcept(FE_ALL_EXCEPT);
    sigemptyset(&s->mask);
    sigprocmask(SIG_BLOCK, NULL, &s->mask);
    sigaltstack(NULL, &s->stack);
}

static int masks_differ(const sigset_t *a, const sigset_t *b)
{
    for (int i = 1; i < 65; i++)
        if (sigismember(a, i) != sigismember(b, i))
            return 1;
    return 0;
}

static void unusual(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
    fesetround(FE_UPWARD);
}

static void report(const char *name, int number, const struct surroundings *before)
{
    struct surroundings after;
    look(&after);
    fesetround(FE_TONEAREST);
    printf("%-28s errno %d rounding %d exceptions %#x mask %d stack %d\n", name, number,
           after.rounding != before->rounding, after.exceptions ^ before->exceptions,
           masks_differ(&after.mask, &before->mask), after.stack.ss_sp != before->stack.ss_sp);
}

/* errno is read first: looking at the rest may change it. */
#define TRY(name, call)                     \
    do {                                    \
        struct surroundings before_;        \
        unusual();                          \
        look(&before_);                     \
        errno = ODD_ERRNO;                  \
        (void)CL_AS(#name, call);           \
        int number_ = errno;                \
        report(#name, number_, &before_);   \
    } while (0)

static void queries(void)
{
    cl_uint n;
    char text[4096];
    TRY(clGetPlatformIDs, clGetPlatformIDs(0, NULL, &n));
    TRY(clGetPlatformIDs, clGetPlatformIDs(0, NULL, NULL));
    TRY(clGetPlatformInfo, clGetPlatformInfo(d.platform, CL_PLATFORM_NAME, sizeof text, text, NULL));
    TRY(clGetDeviceIDs, clGetDeviceIDs(d.platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n));
    TRY(clGetDeviceIDs, clGetDeviceIDs(d.platform, CL_DEVICE_TYPE_CUSTOM, 0, NULL, &n));
    TRY(clGetDeviceInfo, clGetDeviceInfo(d.device, CL_DEVICE_NAME, sizeof text, text, NULL));
    TRY(clGetContextInfo, clGetContextInfo(d.context, CL_CONTEXT_NUM_DEVICES, sizeof n, &n, NULL));
    TRY(clGetCommandQueueInfo, clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof n, &n, NULL));
    TRY(clGetMemObjectInfo, clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof n, &n, NULL));
    TRY(clGetKernelInfo, clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL));
    TRY(clGetProgramInfo, clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof n, &n, NULL));
    TRY(clGetEventInfo, clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof n, &n, NULL));
    TRY(clGetEventProfilingInfo,
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof text, text, NULL));
}

static void commands(void)
{
    int v[16] = {0}, zero = 0;
    size_t size = 16;
    cl_event done = NULL;
    TRY(clSetKernelArg, clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    TRY(clSetKernelArg, clSetKernelArg(kernel, 9, sizeof buffer, &buffer));
    TRY(clEnqueueNDRangeKernel,
        clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    TRY(clEnqueueNDRangeKernel,
        clEnqueueNDRangeKernel(queue, kernel, 9, NULL, &size, NULL, 0, NULL, NULL));
    TRY(clEnqueueReadBuffer,
        clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof v, v, 0, NULL, NULL));
    TRY(clEnqueueWriteBuffer,
        clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof v, v, 0, NULL, NULL));
    TRY(clEnqueueFillBuffer,
        clEnqueueFillBuffer(queue, buffer, &zero, sizeof zero, 0, sizeof v, 0, NULL, &done));
    TRY(clFlush, clFlush(queue));
    TRY(clFinish, clFinish(queue));
    TRY(clWaitForEvents, clWaitForEvents(1, &done));
    TRY(clReleaseEvent, clReleaseEvent(done));
    TRY(clRetainMemObject, clRetainMemObject(buffer));
    TRY(clReleaseMemObject, clReleaseMemObject(buffer));
    TRY(clFinish, clFinish(NULL));
}

int main(void)
{
    d = dev_open();
    queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    program = build(&d, source, NULL);
    kernel = MAKE(clCreateKernel(program, "one", &err));
    buffer = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 64, NULL, &err));
    event = MAKE(clCreateUserEvent(d.context, &err));

    /* Compile and start everything once: what happens once may allocate and open. */
    size_t size = 16;
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFinish(queue));

    static char alternate[65536];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGRTMIN + 3);
    CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
    CHECK(sigaltstack(&stack, NULL) == 0);

    queries();
    commands();

    OK(clReleaseEvent(event));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(queue));
    dev_close(&d);
    expect_print();
    return 0;
}
