/* Every kind of buffer command, on every device of every platform, on an in-order and
 * an out-of-order queue: with and without events of the program's own, held back by
 * user events, and failing. Images have images.c.
 */
#include "cl_util.h"

static const char *source =
    "__kernel void add(__global int *v, int n) { v[get_global_id(0)] += n; }\n";

enum { N = 1024, BYTES = N * sizeof(int) };

struct bench {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue, other; /* the second is always in order */
    cl_kernel kernel;
    cl_mem a, b;
    int host[N];
    int oclgrind;
};

static void enqueue_add(struct bench *t, cl_command_queue q, cl_mem v, int n, cl_uint waits,
                        const cl_event *wait, cl_event *done)
{
    size_t size = N;
    OK(clSetKernelArg(t->kernel, 0, sizeof v, &v));
    OK(clSetKernelArg(t->kernel, 1, sizeof n, &n));
    OK(clEnqueueNDRangeKernel(q, t->kernel, 1, NULL, &size, NULL, waits, wait, done));
}

static void expect_all(struct bench *t, cl_mem v, int wanted)
{
    memset(t->host, 0xee, BYTES);
    OK(clEnqueueReadBuffer(t->queue, v, CL_TRUE, 0, BYTES, t->host, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        CHECK(t->host[i] == wanted);
}

static void release_events(cl_event *e, int n)
{
    for (int i = 0; i < n; i++)
        OK(clReleaseEvent(e[i]));
}

/* Fill, write, copy, rect copy, read; each waits for the one before by its event. */
static void transfers(struct bench *t)
{
    int three = 3;
    cl_event e[7];
    for (int i = 0; i < N; i++)
        t->host[i] = 5;
    OK(clEnqueueFillBuffer(t->queue, t->a, &three, sizeof three, 0, BYTES, 0, NULL, &e[0]));
    OK(clEnqueueWriteBuffer(t->queue, t->b, CL_FALSE, 0, BYTES, t->host, 1, &e[0], &e[1]));
    OK(clEnqueueCopyBuffer(t->queue, t->a, t->b, 0, 0, BYTES / 2, 1, &e[1], &e[2]));
    size_t origin[3] = {0, 0, 0}, half[3] = {0, 16, 0}, region[3] = {128, 16, 1};
    OK(clEnqueueCopyBufferRect(t->queue, t->a, t->b, origin, half, region, 128, 0, 128, 0, 1,
                               &e[2], &e[3]));
    int rect[N];
    OK(clEnqueueReadBufferRect(t->queue, t->b, CL_FALSE, origin, origin, region, 128, 0, 128, 0,
                               rect, 1, &e[3], &e[4]));
    OK(clEnqueueWriteBufferRect(t->queue, t->a, CL_FALSE, origin, origin, region, 128, 0, 128, 0,
                                rect, 1, &e[4], &e[5]));
    enqueue_add(t, t->queue, t->b, 4, 1, &e[5], &e[6]);
    OK(clWaitForEvents(1, &e[6]));
    release_events(e, 7);
    expect_all(t, t->b, 7);
}

/* The program never asks for an event: a tracer must, and must release it. */
static void without_events(struct bench *t)
{
    int zero = 0;
    OK(clEnqueueFillBuffer(t->queue, t->a, &zero, sizeof zero, 0, BYTES, 0, NULL, NULL));
    OK(clEnqueueBarrierWithWaitList(t->queue, 0, NULL, NULL));
    for (int i = 0; i < 20; i++) {
        enqueue_add(t, t->queue, t->a, 1, 0, NULL, NULL);
        OK(clEnqueueBarrierWithWaitList(t->queue, 0, NULL, NULL));
    }
    OK(clFlush(t->queue));
    OK(clFinish(t->queue));
    expect_all(t, t->a, 20);
}

static void maps(struct bench *t)
{
    int two = 2;
    cl_event mapped, unmapped;
    int *p = MAKE(clEnqueueMapBuffer(t->queue, t->a, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                     BYTES, 0, NULL, NULL, &err));
    for (int i = 0; i < N; i++)
        p[i] = two;
    OK(clEnqueueUnmapMemObject(t->queue, t->a, p, 0, NULL, &unmapped));
    p = MAKE(clEnqueueMapBuffer(t->queue, t->a, CL_FALSE, CL_MAP_READ, 0, BYTES, 1, &unmapped,
                                &mapped, &err));
    OK(clWaitForEvents(1, &mapped));
    CHECK(p[0] == two && p[N - 1] == two);
    OK(clEnqueueUnmapMemObject(t->queue, t->a, p, 0, NULL, NULL));
    OK(clFinish(t->queue));
    release_events((cl_event[]){mapped, unmapped}, 2);
}

/* A user event holds back commands of two queues; they pass in the order in which
 * the program opens the gates, not in which it enqueued. */
static void gates(struct bench *t)
{
    cl_event gate[2], e[4];
    int one = 1;
    for (int i = 0; i < 2; i++)
        gate[i] = MAKE(clCreateUserEvent(t->context, &err));
    OK(clEnqueueFillBuffer(t->queue, t->a, &one, sizeof one, 0, BYTES, 1, &gate[0], &e[0]));
    enqueue_add(t, t->other, t->a, 10, 1, &e[0], &e[1]);
    enqueue_add(t, t->queue, t->a, 100, 1, &e[1], &e[2]);
    OK(clEnqueueFillBuffer(t->other, t->b, &one, sizeof one, 0, BYTES, 2, (cl_event[]){gate[1], e[1]},
                           &e[3]));
    if (!t->oclgrind) {
        OK(clFlush(t->queue));
        OK(clFlush(t->other));
    }
    cl_int status = 99;
    OK(clGetEventInfo(e[3], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    CHECK(status == CL_QUEUED || status == CL_SUBMITTED);
    OK(clSetUserEventStatus(gate[1], CL_COMPLETE));
    OK(clSetUserEventStatus(gate[0], CL_COMPLETE));
    OK(clWaitForEvents(4, e));
    release_events(gate, 2);
    release_events(e, 4);
    expect_all(t, t->a, 111);
    expect_all(t, t->b, 1);
}

static void markers(struct bench *t)
{
    cl_event e[4];
    OK(clEnqueueMigrateMemObjects(t->queue, 1, &t->a, 0, 0, NULL, &e[0]));
    OK(clEnqueueMarkerWithWaitList(t->queue, 1, &e[0], &e[1]));
    OK(clEnqueueMarkerWithWaitList(t->queue, 0, NULL, &e[2]));
    OK(clEnqueueBarrierWithWaitList(t->queue, 1, &e[2], &e[3]));
    OK(clFinish(t->queue));
    OK(clWaitForEvents(4, e));
    release_events(e, 4);
}

static void CL_CALLBACK on_host(void *args)
{
    int *out;
    memcpy(&out, args, sizeof out);
    *out = 4711;
}

static int native(struct bench *t)
{
    cl_device_exec_capabilities can = 0;
    OK(clGetDeviceInfo(t->device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, NULL));
    if (!(can & CL_EXEC_NATIVE_KERNEL))
        return 0;
    int out = 0, *where = &out;
    cl_event e;
    cl_int code = CL(clEnqueueNativeKernel(t->queue, on_host, &where, sizeof where, 0, NULL, NULL,
                                           0, NULL, &e));
    CHECK(code == CL_SUCCESS);
    OK(clWaitForEvents(1, &e));
    OK(clReleaseEvent(e));
    CHECK(out == 4711);
    return 1;
}

static int shared_memory(struct bench *t)
{
    cl_device_svm_capabilities can = 0;
    if (t->oclgrind)
        return 0;
    cl_int asked = CL(clGetDeviceInfo(t->device, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL));
    if (asked != CL_SUCCESS || !(can & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        return 0;
    int *v = CL(clSVMAlloc(t->context, CL_MEM_READ_WRITE, BYTES, 0));
    int *w = CL(clSVMAlloc(t->context, CL_MEM_READ_WRITE, BYTES, 0));
    CHECK(v && w);
    int three = 3, four = 4;
    size_t size = N;
    OK(clEnqueueSVMMemFill(t->queue, v, &three, sizeof three, BYTES, 0, NULL, NULL));
    OK(clEnqueueBarrierWithWaitList(t->queue, 0, NULL, NULL));
    OK(clSetKernelArgSVMPointer(t->kernel, 0, v));
    OK(clSetKernelArg(t->kernel, 1, sizeof four, &four));
    OK(clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clEnqueueBarrierWithWaitList(t->queue, 0, NULL, NULL));
    OK(clEnqueueSVMMemcpy(t->queue, CL_TRUE, w, v, BYTES, 0, NULL, NULL));
    OK(clEnqueueSVMMap(t->queue, CL_TRUE, CL_MAP_READ, w, BYTES, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        CHECK(w[i] == 7);
    OK(clEnqueueSVMUnmap(t->queue, w, 0, NULL, NULL));
    OK(clFinish(t->queue));
    CL(clSVMFree(t->context, v));
    void *rest[] = {w};
    OK(clEnqueueSVMFree(t->queue, 1, rest, NULL, NULL, 0, NULL, NULL));
    OK(clFinish(t->queue));
    return 1;
}

/* Commands refused at once, and a command whose dependency fails later. */
static void failing(struct bench *t)
{
    size_t size = N;
    cl_kernel fresh;
    cl_program program;
    OK(clGetKernelInfo(t->kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL));
    fresh = MAKE(clCreateKernel(program, "add", &err));
    cl_event none = (cl_event)0x1;
    CHECK(CL(clEnqueueNDRangeKernel(t->queue, fresh, 1, NULL, &size, NULL, 0, NULL, &none)) ==
          CL_INVALID_KERNEL_ARGS);
    CHECK(CL(clEnqueueReadBuffer(t->queue, t->a, CL_TRUE, BYTES, 4, t->host, 0, NULL, &none)) ==
          CL_INVALID_VALUE);
    CHECK(CL(clEnqueueCopyBuffer(t->queue, t->a, t->a, 0, 4, 64, 0, NULL, NULL)) ==
          CL_MEM_COPY_OVERLAP);
    CHECK(none == (cl_event)0x1); /* a refused command makes no event */
    OK(clReleaseKernel(fresh));

    cl_event gate = MAKE(clCreateUserEvent(t->context, &err)), e;
    int one = 1;
    OK(clEnqueueFillBuffer(t->other, t->b, &one, sizeof one, 0, BYTES, 1, &gate, &e));
    if (!t->oclgrind)
        OK(clFlush(t->other));
    OK(clSetUserEventStatus(gate, -42));
    cl_int waited = CL(clWaitForEvents(1, &e)), status = 99;
    OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    printf("  failed dependency: wait %d status %d\n", waited, status);
    OK(clReleaseEvent(gate));
    OK(clReleaseEvent(e));
}

static void with_queue(struct bench *t, cl_command_queue_properties how, const char *name)
{
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, how, 0};
    cl_int code = -9999;
    if (t->oclgrind)
        t->queue = CL(clCreateCommandQueue(t->context, t->device, how, &code));
    else
        t->queue = CL(clCreateCommandQueueWithProperties(t->context, t->device, list, &code));
    if (code != CL_SUCCESS) {
        printf("  %s: not offered (%d)\n", name, code);
        return;
    }
    t->other = MAKE(clCreateCommandQueue(t->context, t->device, 0, &err));
    transfers(t);
    without_events(t);
    maps(t);
    gates(t);
    markers(t);
    printf("  %s: native %d", name, native(t));
    printf(" svm %d\n", shared_memory(t));
    failing(t);
    OK(clReleaseCommandQueue(t->queue));
    OK(clReleaseCommandQueue(t->other));
}

static void on_device(cl_platform_id platform, cl_device_id device)
{
    struct bench t = {.platform = platform, .device = device, .oclgrind = is_oclgrind(platform)};
    char name[256];
    OK(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
    printf("%s\n", name);
    t.context = MAKE(clCreateContext(NULL, 1, &device, NULL, NULL, &err));
    struct dev d = {platform, device, t.context};
    cl_program program = build(&d, source, NULL);
    t.kernel = MAKE(clCreateKernel(program, "add", &err));
    t.a = MAKE(clCreateBuffer(t.context, CL_MEM_READ_WRITE, BYTES, NULL, &err));
    t.b = MAKE(clCreateBuffer(t.context, CL_MEM_READ_WRITE, BYTES, NULL, &err));
    with_queue(&t, 0, "in order");
    with_queue(&t, CL_QUEUE_PROFILING_ENABLE, "in order, profiling");
    with_queue(&t, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, "out of order");
    OK(clReleaseMemObject(t.a));
    OK(clReleaseMemObject(t.b));
    OK(clReleaseKernel(t.kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseContext(t.context));
}

int main(void)
{
    cl_platform_id platforms[16];
    cl_device_id devices[16];
    cl_uint np = 0, nd = 0;
    OK(clGetPlatformIDs(16, platforms, &np));
    for (cl_uint i = 0; i < np && i < 16; i++) {
        OK(clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 16, devices, &nd));
        for (cl_uint k = 0; k < nd && k < 16; k++)
            on_device(platforms[i], devices[k]);
    }
    expect_print();
    return 0;
}
