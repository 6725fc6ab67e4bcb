/* A program that uses an invented API beside OpenCL, and CUDA's driver if there is one, and
 * makes them look alike: Gizmo's devices, queues and kernels get the handles that OpenCL's
 * have, and what Gizmo and CUDA call by one name is called in each.
 *
 *   both [cuda]
 *
 * Prints what it called, under each API's name, and each command that Gizmo has run, with the
 * times of its device's clock.
 */
#include "cl_util.h"
#include "gizmo.h"

#include <dlfcn.h>

#define GIZMO(call) TRY_GIZMO("gizmo:" #call, call)
#define TRY_GIZMO(name, call)                                                 \
    do {                                                                      \
        gizmoResult result_ = CL_AS(name, call);                              \
        if (result_ != GIZMO_SUCCESS) {                                       \
            fprintf(stderr, "%s: %d\n", name, result_);                       \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static const char *source = "__kernel void twice(__global int *v) { v[get_global_id(0)] *= 2; }\n";

/* What Gizmo says of a command, when it has run. */
static void ran(const char *device, const char *queue, const char *kind, const char *kernel, size_t bytes,
                gizmoEvent event)
{
    gizmoTimes t;
    GIZMO(gizmoEventWait(event));
    GIZMO(gizmoEventTimes(event, &t));
    printf("RAN device=%s queue=%s kind=%s kernel=%s bytes=%zu waited=%llu took=%llu\n", device, queue,
           kind, kernel, bytes, (unsigned long long)(t.started - t.queued),
           (unsigned long long)(t.ended - t.started));
    GIZMO(gizmoEventRelease(event));
}

static void cuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    int (*init)(unsigned) = dlsym(library, "cuInit");
    int (*version)(int *) = dlsym(library, "cuDriverGetVersion");
    int (*retain)(void **, int) = dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*enter)(void *) = dlsym(library, "cuCtxSetCurrent");
    int (*synchronize)(void) = dlsym(library, "cuCtxSynchronize");
    CHECK(init && version && retain && enter && synchronize);
    int number;
    void *context;
    CHECK(CL_AS("cuda:cuInit", init(0)) == 0);
    CHECK(CL_AS("cuda:cuDriverGetVersion", version(&number)) == 0);
    CHECK(CL_AS("cuda:cuDevicePrimaryCtxRetain", retain(&context, 0)) == 0);
    CHECK(CL_AS("cuda:cuCtxSetCurrent", enter(context)) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(CL_AS("cuda:cuCtxSynchronize", synchronize()) == 0);
}

int main(int argc, char **argv)
{
    int with_cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    struct dev d = dev_open();
    cl_command_queue queue = MAKE(clCreateCommandQueueWithProperties(d.context, d.device, NULL, &err));
    cl_program program = build(&d, source, NULL);
    cl_kernel kernel = MAKE(clCreateKernel(program, "twice", &err));
    int numbers[256];
    for (int i = 0; i < 256; i++)
        numbers[i] = i;
    cl_mem buffer = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, sizeof numbers, NULL, &err));
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL));
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));

    /* The same handles, for other things. The second device is known by what CUDA calls its first. */
    unsigned count = 0;
    gizmoDevice a, b;
    gizmoQueue of_a, of_b;
    gizmoKernel spin, turn;
    GIZMO(gizmoDeviceCount(&count));
    CHECK(count == 2);
    GIZMO(gizmoDeviceOpen(0, (uintptr_t)d.device, &a));
    GIZMO(gizmoDeviceOpen(1, 1, &b));
    GIZMO(gizmoQueueCreate(a, (uintptr_t)queue, &of_a));
    GIZMO(gizmoQueueCreate(b, 1, &of_b));
    GIZMO(gizmoKernelCreate("spin", (uintptr_t)kernel, &spin));
    GIZMO(gizmoKernelCreate("turn", 1, &turn));
    CHECK((void *)of_a == (void *)queue && (void *)a == (void *)d.device);

    /* Asynchronous commands of both, alternately. */
    gizmoEvent spun[8], turned[4], moved[2];
    void *memory;
    char text[64] = "through a device";
    size_t items = 256;
    GIZMO(gizmoAllocate(a, 4096, &memory));
    GIZMO(gizmoWrite(of_a, memory, text, sizeof text, &moved[0]));
    for (int i = 0; i < 8; i++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        GIZMO(gizmoRun(of_a, spin, 4, 64, 200 + 100 * i, &spun[i]));
        if (i % 2)
            GIZMO(gizmoRun(of_b, turn, 1, 32, 1000, &turned[i / 2]));
    }
    GIZMO(gizmoRead(of_a, memory, text, sizeof text, &moved[1]));
    OK(clFinish(queue));
    GIZMO(gizmoQueueFinish(of_b));
    GIZMO(cuCtxSynchronize(of_a, 60000));
    ran("A", "1", "write", "-", sizeof text, moved[0]);
    for (int i = 0; i < 8; i++)
        ran("A", "1", "kernel", "spin", 0, spun[i]);
    ran("A", "1", "read", "-", sizeof text, moved[1]);
    for (int i = 0; i < 4; i++)
        ran("B", "2", "kernel", "turn", 0, turned[i]);

    /* The functions that are handed out; one is newer than the header. */
    gizmoTable table = { .size = sizeof table };
    GIZMO(gizmoGetTable(3, &table));
    for (int i = 0; i < 5; i++) {
        TRY_GIZMO("gizmo:gizmoRun", table.run(of_b, turn, 2, 16, 300, &turned[0]));
        TRY_GIZMO("gizmo:cuCtxSynchronize", table.synchronize(of_b, 60000));
        ran("B", "2", "kernel", "turn", 0, turned[0]);
    }
    gizmoResult (*tune)(uint32_t, uint32_t) = CL_AS("gizmo:gizmoGetFunction", gizmoGetFunction("gizmoTune"));
    CHECK(tune);
    for (int i = 0; i < 7; i++)
        TRY_GIZMO("gizmo:gizmoTune", tune(1, 50));
    gizmoResult (*asked)(gizmoQueue, uint32_t) = dlsym(RTLD_DEFAULT, "cuCtxSynchronize");
    CHECK(asked);
    TRY_GIZMO("gizmo:cuCtxSynchronize", asked(of_a, 1));
    if (with_cuda)
        cuda();
    GIZMO(cuCtxSynchronize(of_b, 1));

    /* Commands without an event. */
    for (int i = 0; i < 100; i++)
        GIZMO(gizmoRun(of_a, spin, 1, 1, 0, NULL));
    GIZMO(gizmoQueueFinish(of_a));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL));
    CHECK(numbers[3] == 3 * 256 && strcmp(text, "through a device") == 0);
    CHECK(CL_AS("gizmo:gizmoQueueFinish", gizmoQueueFinish((gizmoQueue)77)) == GIZMO_INVALID_HANDLE);
    GIZMO(gizmoFree(memory));
    GIZMO(gizmoQueueDestroy(of_a));
    GIZMO(gizmoQueueDestroy(of_b));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(d.context));
    expect_print();
    return 0;
}
