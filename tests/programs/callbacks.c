/* Callbacks of all kinds; the API is called inside them, on threads that belong to
 * the implementation, or on the thread that waits.
 *
 *   callbacks [commands=50]    Oclgrind's time doubles with each: 8 is enough for it
 */
#include "cl_util.h"

enum { MAX_COMMANDS = 1000 };

static long commands;

static int submitted, running, complete, built, freed, context_gone, user_called;
static unsigned long marks_seen;

static void add(int *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELEASE);
}

static void wait_until_named(const char *name, const int *counter, int wanted)
{
    for (int i = 0; i < 500 && __atomic_load_n(counter, __ATOMIC_ACQUIRE) != wanted; i++)
        sleep_ms(1);
    if (__atomic_load_n(counter, __ATOMIC_ACQUIRE) != wanted)
        fail(__FILE__, __LINE__, name, *counter);
}

#define wait_until(counter, wanted) wait_until_named(#counter, counter, wanted)

/* user_data is the command's number + 1, so that a mixed-up pointer is noticed. */
static void CL_CALLBACK on_event(cl_event event, cl_int status, void *user_data)
{
    cl_uint type = 0;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    CHECK(type == CL_COMMAND_FILL_BUFFER);
    long number = (long)user_data;
    CHECK(number >= 1 && number <= commands);
    __atomic_fetch_add(&marks_seen, number, __ATOMIC_RELAXED);
    CHECK(status == CL_SUBMITTED || status == CL_RUNNING || status == CL_COMPLETE);
    add(status == CL_COMPLETE ? &complete : status == CL_RUNNING ? &running : &submitted);
}

static void CL_CALLBACK on_user_event(cl_event event, cl_int status, void *user_data)
{
    cl_context context = NULL;
    OK(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL));
    CHECK(context == user_data && status == -5);
    add(&user_called);
}

static void CL_CALLBACK on_build(cl_program program, void *user_data)
{
    cl_uint references = 0;
    OK(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof references, &references, NULL));
    CHECK(user_data == &built);
    add(&built);
}

static void CL_CALLBACK on_free(cl_mem memory, void *user_data)
{
    (void)memory; /* gone: it may only be named */
    CHECK(user_data == &freed);
    cl_uint n = 0;
    OK(clGetPlatformIDs(0, NULL, &n));
    add(&freed);
}

static void CL_CALLBACK on_notice(const char *text, const void *data, size_t size, void *user_data)
{
    (void)text, (void)data, (void)size;
    CHECK(user_data == &context_gone);
}

static void CL_CALLBACK on_context_gone(cl_context context, void *user_data)
{
    (void)context;
    CHECK(user_data == &context_gone);
    add(&context_gone);
}

static void events(struct dev *d)
{
    cl_command_queue queue = MAKE(clCreateCommandQueue(d->context, d->device, 0, &err));
    cl_mem buffer = MAKE(clCreateBuffer(d->context, CL_MEM_READ_WRITE, 4096, NULL, &err));
    cl_event gate = MAKE(clCreateUserEvent(d->context, &err)), e[MAX_COMMANDS];
    int zero = 0;
    for (long i = 0; i < commands; i++) {
        void *number = (void *)(i + 1);
        OK(clEnqueueFillBuffer(queue, buffer, &zero, 4, 0, 4096, 1, &gate, &e[i]));
        OK(clSetEventCallback(e[i], CL_SUBMITTED, on_event, number));
        OK(clSetEventCallback(e[i], CL_RUNNING, on_event, number));
        OK(clSetEventCallback(e[i], CL_COMPLETE, on_event, number));
    }
    if (!is_oclgrind(d->platform))
        OK(clFlush(queue));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clFinish(queue));
    /* Oclgrind names CL_COMPLETE to all three. */
    int each = is_oclgrind(d->platform) ? 0 : commands;
    wait_until(&complete, 3 * commands - 2 * each);
    wait_until(&running, each);
    wait_until(&submitted, each);
    CHECK(marks_seen == 3ul * commands * (commands + 1) / 2);

    /* A callback set after completion is called as well; by Oclgrind never. */
    OK(clSetEventCallback(e[0], CL_COMPLETE, on_event, (void *)1));
    wait_until(&complete, each ? commands + 1 : 3 * commands);
    for (int i = 0; i < commands; i++)
        OK(clReleaseEvent(e[i]));
    OK(clReleaseEvent(gate));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
}

static void failed_user_event(struct dev *d)
{
    cl_event event = MAKE(clCreateUserEvent(d->context, &err));
    OK(clSetEventCallback(event, CL_COMPLETE, on_user_event, d->context));
    OK(clSetUserEventStatus(event, -5));
    /* PoCL 3.1 doesn't call back for a negative status: both are taken. */
    sleep_ms(50);
    OK(clReleaseEvent(event));
}

static void program_and_memory(struct dev *d)
{
    const char *source = "__kernel void nothing(__global int *v) { v[0] = 1; }\n";
    cl_program program = MAKE(clCreateProgramWithSource(d->context, 1, &source, NULL, &err));
    OK(clBuildProgram(program, 1, &d->device, NULL, on_build, &built));
    wait_until(&built, 1);
    OK(clReleaseProgram(program));

    cl_mem buffer = MAKE(clCreateBuffer(d->context, CL_MEM_READ_WRITE, 64, NULL, &err));
    OK(clSetMemObjectDestructorCallback(buffer, on_free, &freed));
    OK(clSetMemObjectDestructorCallback(buffer, on_free, &freed));
    OK(clReleaseMemObject(buffer));
    wait_until(&freed, 2);
}

int main(int argc, char **argv)
{
    struct dev d;
    commands = arg_or(argc, argv, 1, 50);
    CHECK(commands > 0 && commands <= MAX_COMMANDS);
    OK(clGetPlatformIDs(1, &d.platform, NULL));
    OK(clGetDeviceIDs(d.platform, CL_DEVICE_TYPE_ALL, 1, &d.device, NULL));
    d.context = MAKE(clCreateContext(NULL, 1, &d.device, on_notice, &context_gone, &err));
    events(&d);
    failed_user_event(&d);
    program_and_memory(&d);
    cl_int asked = CL_INVALID_OPERATION;
    if (!is_oclgrind(d.platform))
        asked = CL(clSetContextDestructorCallback(d.context, on_context_gone, &context_gone));
    dev_close(&d);
    if (asked == CL_SUCCESS)
        wait_until(&context_gone, 1);
    printf("events %d %d %d user %d build %d memory %d context %d\n", submitted, running, complete,
           user_called, built, freed, context_gone);
    expect_print();
    return 0;
}
