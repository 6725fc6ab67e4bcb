/* Prints everything a program can observe of OpenCL without a clock or an address. The
 * stdout of a traced run must be the same, byte for byte, as that of a bare run.
 */
#include "cl_util.h"
#include "transparent_errors.h"

static int callbacks_seen;
static long callback_statuses;

static void platforms(void)
{
    cl_platform_id list[16];
    cl_uint n = 0;
    char text[8192];
    OK(clGetPlatformIDs(16, list, &n));
    printf("platforms %u\n", n);
    for (cl_uint i = 0; i < n && i < 16; i++) {
        static const cl_platform_info what[] = {CL_PLATFORM_NAME, CL_PLATFORM_VENDOR,
                                                CL_PLATFORM_VERSION, CL_PLATFORM_PROFILE,
                                                CL_PLATFORM_EXTENSIONS, CL_PLATFORM_ICD_SUFFIX_KHR};
        for (size_t k = 0; k < sizeof what / sizeof *what; k++) {
            size_t size = 0;
            cl_int code = CL(clGetPlatformInfo(list[i], what[k], sizeof text, text, &size));
            printf("  %#x: %d %zu %s\n", what[k], code, size, code ? "" : text);
        }
        for (cl_uint k = 0; k < i; k++)
            CHECK(list[k] != list[i]); /* no platform twice */
    }
}

static void device_facts(struct dev *d)
{
    static const cl_device_info what[] = {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DEVICE_EXTENSIONS,
                                          CL_DRIVER_VERSION};
    char text[8192];
    for (size_t k = 0; k < sizeof what / sizeof *what; k++) {
        OK(clGetDeviceInfo(d->device, what[k], sizeof text, text, NULL));
        printf("device %#x: %s\n", what[k], text);
    }
    cl_ulong a = 0, b = 0;
    if (!is_oclgrind(d->platform))
        printf("device and host timer: %d\n", CL(clGetDeviceAndHostTimer(d->device, &a, &b)));
}

/* What a queue says of itself. */
static void queue_facts(const char *name, cl_command_queue q)
{
    cl_command_queue_properties how = 99;
    cl_queue_properties list[16];
    cl_uint references = 99;
    size_t size = 0;
    OK(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, sizeof how, &how, NULL));
    OK(clGetCommandQueueInfo(q, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, NULL));
    cl_int code = CL(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES_ARRAY, sizeof list, list, &size));
    printf("queue %s: properties %#lx references %u array %d %zu:", name, (long)how, references, code,
           code ? 0 : size);
    for (size_t i = 0; !code && i < size / sizeof *list; i++)
        printf(" %#lx", (long)list[i]);
    printf("\n");
}

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *user_data)
{
    (void)event;
    CHECK(user_data == &callbacks_seen);
    __atomic_fetch_add(&callback_statuses, status, __ATOMIC_RELAXED);
    __atomic_fetch_add(&callbacks_seen, 1, __ATOMIC_RELEASE);
}

static cl_uint event_references(cl_event e)
{
    cl_uint n = 99;
    OK(clGetEventInfo(e, CL_EVENT_REFERENCE_COUNT, sizeof n, &n, NULL));
    return n;
}

static cl_uint queue_references(cl_command_queue q)
{
    cl_uint n = 99;
    OK(clGetCommandQueueInfo(q, CL_QUEUE_REFERENCE_COUNT, sizeof n, &n, NULL));
    return n;
}

static void profiling_codes(cl_event e)
{
    static const cl_profiling_info what[] = {
        CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
        CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_COMPLETE, 0x9999};
    printf("  profiling:");
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        cl_ulong t = 0;
        size_t size = 0;
        cl_int code = CL(clGetEventProfilingInfo(e, what[i], sizeof t, &t, &size));
        printf(" %d/%zu", code, code ? 0 : size);
    }
    cl_uint small;
    printf(" small %d\n", CL(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof small,
                                                      &small, NULL)));
}

/* A command held back by a gate, so that the counts between can be read at leisure.
 * After completion the implementation lets its own references go a little later. */
static void command_life(struct dev *d, cl_command_queue q, cl_mem m, int callback)
{
    cl_event gate = MAKE(clCreateUserEvent(d->context, &err)), e;
    int zero = 0;
    cl_uint queue_before = queue_references(q);
    OK(clEnqueueFillBuffer(q, m, &zero, sizeof zero, 0, 64, 1, &gate, &e));
    printf("  event references: enqueued %u", event_references(e));
    printf(" (queue %+d gate %u)", (int)(queue_references(q) - queue_before), event_references(gate));
    OK(clRetainEvent(e));
    printf(" retained %u", event_references(e));
    if (callback) {
        OK(clSetEventCallback(e, CL_COMPLETE, on_event, &callbacks_seen));
        printf(" with callback %u", event_references(e));
    }
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clWaitForEvents(1, &e));
    sleep_ms(30);
    printf(" complete %u", event_references(e));
    OK(clReleaseEvent(e));
    printf(" released %u\n", event_references(e));
    profiling_codes(e);
    OK(clReleaseEvent(e));
    OK(clReleaseEvent(gate));
    sleep_ms(10);
    printf("  queue references %+d\n", (int)(queue_references(q) - queue_before));
}

static void queues(struct dev *d, cl_mem m)
{
    static const cl_command_queue_properties how[] = {
        0, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    char name[64];
    for (int i = 0; i < 4; i++) {
        cl_command_queue q = MAKE(clCreateCommandQueue(d->context, d->device, how[i], &err));
        snprintf(name, sizeof name, "old %#lx", (long)how[i]);
        queue_facts(name, q);
        command_life(d, q, m, i & 1);
        OK(clReleaseCommandQueue(q));
    }
    if (is_oclgrind(d->platform))
        return;
    /* NULL, an empty list, a list without the properties, and lists with them. */
    cl_queue_properties none[] = {0};
    for (int i = -2; i < 4; i++) {
        cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, i < 0 ? 0 : how[i], 0};
        cl_queue_properties *given = i == -2 ? NULL : i == -1 ? none : list;
        cl_command_queue q =
            MAKE(clCreateCommandQueueWithProperties(d->context, d->device, given, &err));
        snprintf(name, sizeof name, "new %d", i);
        queue_facts(name, q);
        CHECK(list[0] == CL_QUEUE_PROPERTIES && list[2] == 0 && none[0] == 0);
        command_life(d, q, m, i & 1);
        OK(clReleaseCommandQueue(q));
    }
}

static void reference_counts(struct dev *d, cl_mem m)
{
    const char *source = "__kernel void one(__global int *v) { v[0] = 1; }\n";
    cl_program p = build(d, source, NULL);
    cl_kernel k = MAKE(clCreateKernel(p, "one", &err));
    cl_command_queue q = MAKE(clCreateCommandQueue(d->context, d->device, 0, &err));
    size_t one = 1;
    for (int round = 0; round < 2; round++) {
        cl_uint n[5];
        sleep_ms(10);
        OK(clGetContextInfo(d->context, CL_CONTEXT_REFERENCE_COUNT, sizeof *n, &n[0], NULL));
        OK(clGetProgramInfo(p, CL_PROGRAM_REFERENCE_COUNT, sizeof *n, &n[1], NULL));
        OK(clGetKernelInfo(k, CL_KERNEL_REFERENCE_COUNT, sizeof *n, &n[2], NULL));
        OK(clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof *n, &n[3], NULL));
        n[4] = queue_references(q);
        printf("references: context %u program %u kernel %u memory %u queue %u\n", n[0], n[1], n[2],
               n[3], n[4]);
        OK(clSetKernelArg(k, 0, sizeof m, &m));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clFinish(q));
    }
    OK(clReleaseCommandQueue(q));
    OK(clReleaseKernel(k));
    OK(clReleaseProgram(p));
}

static void image_formats(struct dev *d)
{
    cl_uint n = 0;
    cl_int code = CL(clGetSupportedImageFormats(d->context, CL_MEM_READ_WRITE,
                                                CL_MEM_OBJECT_IMAGE2D, 0, NULL, &n));
    printf("image formats %d %u\n", code, n);
}

static void errno_kept(void)
{
    cl_uint n;
    errno = 77;
    OK(clGetPlatformIDs(0, NULL, &n));
    int after_good = errno;
    CL(clGetPlatformIDs(0, NULL, NULL));
    printf("errno %d %d\n", after_good, errno);
}

int main(void)
{
    platforms();
    struct dev d = dev_open();
    device_facts(&d);
    cl_mem m = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 64, NULL, &err));
    queues(&d, m);
    reference_counts(&d, m);
    image_formats(&d);
    errno_kept();
    wrong_calls(&d, m);
    OK(clReleaseMemObject(m));
    dev_close(&d);
    printf("callbacks %d statuses %ld\n", callbacks_seen, callback_statuses);
    expect_print();
    return 0;
}
