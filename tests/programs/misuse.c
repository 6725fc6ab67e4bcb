/* One planted misuse, or the same work done right: what `lint` is to find, and what it is not to.
 *
 *   misuse MODE [right]
 *
 * twice:     a buffer is released twice; some platforms let that pass, on others it ends the program
 * argument:  a buffer is released while it is an argument, and then the kernel is launched
 * race:      a kernel in one queue, a read of its buffer in another, and nothing between them
 * host:      two queues read into the same memory
 * unwaited:  a read that does not block, and nothing waits for it
 * nothing:   a read of a buffer that nothing has written
 * map:       a mapping that never ends
 * mapped:    a kernel uses a buffer that is mapped to be written
 * context:   a buffer of another context is an argument
 * threads:   two threads set the arguments of one kernel before either launches it
 * never:     a kernel waits for an event that the program never completes, and the program is killed
 * build:     a kernel is asked for of a program that could not be built
 * size:      an argument is set with a wrong size, which fails, and the kernel is launched
 * single:    65536 work-items in groups of one
 * small:     20 launches of one group
 * finish:    each clFinish is followed by another
 * wait:      each event is waited for twice
 * back:      what is read of one buffer is written into another
 * unused:    reads that the next one overwrites
 * again:     the same bytes are sent before each launch
 */
#include "cl_util.h"
#include <pthread.h>
#include <signal.h>

enum { ITEMS = 1 << 20, ROUNDS = 10 };

static const char *source =
    "__kernel void inc(__global int *v, int n) { v[get_global_id(0)] += n; }\n"
    "__kernel void slow(__global int *v, int n)\n"
    "{ int s = n; for (int i = 0; i < 20000000; i++) s = s * 1664525 + i; v[get_global_id(0)] = s; }\n";

static struct dev d;
static cl_command_queue queue, other;
static cl_kernel kernel;
static cl_mem buffer, second;
static int values[ITEMS], others[ITEMS];

static void launch(cl_command_queue to, cl_kernel what, size_t items, size_t local, cl_event *event)
{
    OK(clEnqueueNDRangeKernel(to, what, 1, NULL, &items, local ? &local : NULL, 0, NULL, event));
}

static void copy(cl_command_queue from, cl_mem what, int blocks, int *to, cl_uint n, const cl_event *after)
{
    OK(clEnqueueReadBuffer(from, what, blocks, 0, sizeof values, to, n, after, NULL));
}

/* Commands in an order that nothing makes, memory that nothing waits for. */
static int order(const char *mode, int right)
{
    if (!strcmp(mode, "race")) {
        cl_event done;
        launch(queue, kernel, ITEMS, 0, &done);
        copy(other, buffer, CL_TRUE, values, right ? 1 : 0, right ? &done : NULL);
        OK(clWaitForEvents(1, &done));
        OK(clReleaseEvent(done));
    } else if (!strcmp(mode, "host")) {
        copy(queue, buffer, CL_FALSE, values, 0, NULL);
        copy(other, second, CL_FALSE, right ? others : values, 0, NULL);
        OK(clFinish(queue));
        OK(clFinish(other));
    } else if (!strcmp(mode, "unwaited")) {
        copy(queue, buffer, CL_FALSE, values, 0, NULL);
        if (right)
            OK(clFinish(queue));
    } else {
        return 0;
    }
    return 1;
}

static cl_program built;
static pthread_barrier_t both_set;

/* Sets an argument, waits until the other thread has, launches. */
static void *sharer(void *own)
{
    for (int i = 0; i < 4; i++) {
        cl_int n = own ? i : -i - 1;
        cl_kernel mine = own ? own : kernel;
        OK(clSetKernelArg(mine, 0, sizeof buffer, own ? &second : &buffer));
        OK(clSetKernelArg(mine, 1, sizeof n, &n));
        pthread_barrier_wait(&both_set);
        launch(own ? other : queue, mine, ITEMS, 0, NULL);
        OK(clFinish(own ? other : queue));
        pthread_barrier_wait(&both_set);
    }
    return NULL;
}

/* What threads and contexts share, and what the program itself is to complete. */
static int shared(const char *mode, int right)
{
    if (!strcmp(mode, "threads")) {
        pthread_t thread;
        cl_kernel own = MAKE(clCreateKernel(built, "inc", &err));
        CHECK(pthread_barrier_init(&both_set, NULL, 2) == 0);
        CHECK(pthread_create(&thread, NULL, sharer, right ? own : kernel) == 0);
        sharer(NULL);
        CHECK(pthread_join(thread, NULL) == 0);
        OK(clReleaseKernel(own));
    } else if (!strcmp(mode, "context")) {
        cl_context_properties how[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)d.platform, 0};
        cl_context apart = MAKE(clCreateContext(how, 1, &d.device, NULL, NULL, &err));
        cl_mem mem = MAKE(clCreateBuffer(right ? d.context : apart, CL_MEM_READ_WRITE, 4096, NULL, &err));
        CL(clSetKernelArg(kernel, 0, sizeof mem, &mem));
        OK(clReleaseMemObject(mem));
        OK(clReleaseContext(apart));
    } else if (!strcmp(mode, "never")) {
        cl_event gate = MAKE(clCreateUserEvent(d.context, &err));
        size_t items = ITEMS;
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 1, &gate, NULL));
        OK(clFlush(queue));
        if (!right)
            raise(SIGKILL);
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clFinish(queue));
        OK(clReleaseEvent(gate));
    } else {
        return 0;
    }
    return 1;
}

/* Objects that are gone, not written, mapped, not built. */
static int objects(const char *mode, int right)
{
    cl_mem mem = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, sizeof values, NULL, &err));
    int found = 1, released = 0;
    cl_int n = 1;
    if (!strcmp(mode, "twice")) {
        OK(clReleaseMemObject(mem));
        if (!right)
            CL(clReleaseMemObject(mem));
        released = 1;
    } else if (!strcmp(mode, "argument")) {
        OK(clSetKernelArg(kernel, 0, sizeof mem, &mem));
        if (!right)
            OK(clReleaseMemObject(mem));
        size_t items = ITEMS;
        CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        if (right)
            OK(clReleaseMemObject(mem));
        OK(clFinish(queue));
        released = 1;
    } else if (!strcmp(mode, "nothing")) {
        if (right)
            OK(clEnqueueFillBuffer(queue, mem, &n, sizeof n, 0, sizeof values, 0, NULL, NULL));
        copy(queue, mem, CL_TRUE, values, 0, NULL);
    } else if (!strcmp(mode, "map") || !strcmp(mode, "mapped")) {
        int early = right || !strcmp(mode, "map");
        int *at = MAKE(clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_WRITE, 0, sizeof values, 0, NULL, NULL, &err));
        at[0] = 1;
        if (early && (right || strcmp(mode, "map")))
            OK(clEnqueueUnmapMemObject(queue, mem, at, 0, NULL, NULL));
        if (!strcmp(mode, "mapped")) {
            OK(clSetKernelArg(kernel, 0, sizeof mem, &mem));
            launch(queue, kernel, ITEMS, 0, NULL);
            if (!right)
                OK(clEnqueueUnmapMemObject(queue, mem, at, 0, NULL, NULL));
        }
        OK(clFinish(queue));
    } else {
        found = 0;
    }
    if (!released)
        OK(clReleaseMemObject(mem));
    return found;
}

/* Failures that nobody looks at. */
static int failures(const char *mode, int right)
{
    if (!strcmp(mode, "build")) {
        const char *wrong = "__kernel void broken(__global int *v) { v[0] = nothing; }\n";
        cl_program program = MAKE(clCreateProgramWithSource(d.context, 1, &wrong, NULL, &err));
        CHECK(CL(clBuildProgram(program, 1, &d.device, NULL, NULL, NULL)) != CL_SUCCESS);
        cl_int err;
        if (!right)
            CHECK(!CL(clCreateKernel(program, "broken", &err)));
        OK(clReleaseProgram(program));
    } else if (!strcmp(mode, "size")) {
        long n = 1;
        CHECK(CL(clSetKernelArg(kernel, 0, 3, &n)) != CL_SUCCESS);
        if (right)
            OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        launch(queue, kernel, ITEMS, 0, NULL);
        OK(clFinish(queue));
    } else {
        return 0;
    }
    return 1;
}

/* Time that is lost. */
static int waste(const char *mode, int right, cl_kernel slow)
{
    int unused = !strcmp(mode, "unused"), again = !strcmp(mode, "again"), back = !strcmp(mode, "back");
    int finish = !strcmp(mode, "finish"), wait = !strcmp(mode, "wait");
    if (!strcmp(mode, "single")) {
        launch(queue, kernel, 1 << 16, right ? 64 : 1, NULL);
        OK(clFinish(queue));
        return 1;
    }
    if (!strcmp(mode, "small")) {
        for (int i = 0; i < 2 * ROUNDS; i++)
            launch(queue, right ? kernel : slow, right ? ITEMS : 1, 1 + 63 * right, NULL);
        OK(clFinish(queue));
        return 1;
    }
    for (int i = 0; i < ROUNDS && (unused || again || back || finish || wait); i++) {
        if (again) {
            if (right)
                for (int j = 0; j < ITEMS; j++)
                    ((volatile int *)values)[j] = i;
            OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
        }
        cl_event done;
        launch(queue, kernel, ITEMS, 0, wait ? &done : NULL);
        launch(queue, kernel, ITEMS, 0, NULL);
        if (wait) {
            OK(clWaitForEvents(1, &done));
            if (!right)
                OK(clWaitForEvents(1, &done));
            OK(clReleaseEvent(done));
        }
        if (back && right)
            OK(clEnqueueCopyBuffer(queue, buffer, second, 0, 0, sizeof values, 0, NULL, NULL));
        if (unused || (back && !right))
            copy(queue, buffer, CL_TRUE, values, 0, NULL);
        if (back && !right)
            OK(clEnqueueWriteBuffer(queue, second, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
        for (int j = 0; unused && right && j < ITEMS; j++)
            ((volatile int *)values)[j]++;
        if (finish)
            OK(clFinish(queue));
        if (finish && !right)
            OK(clFinish(queue));
    }
    if (again || (back && right) || wait)
        OK(clFinish(queue));
    return unused || again || back || finish || wait;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    const char *mode = argv[1];
    int right = argc == 3;
    d = dev_open();
    built = build(&d, source, NULL);
    queue = MAKE(clCreateCommandQueueWithProperties(d.context, d.device, NULL, &err));
    other = MAKE(clCreateCommandQueueWithProperties(d.context, d.device, NULL, &err));
    kernel = MAKE(clCreateKernel(built, "inc", &err));
    cl_kernel slow = MAKE(clCreateKernel(built, "slow", &err));
    cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    buffer = MAKE(clCreateBuffer(d.context, flags, sizeof values, values, &err));
    second = MAKE(clCreateBuffer(d.context, flags, sizeof values, values, &err));
    cl_int n = 1;
    cl_kernel both[] = {kernel, slow};
    for (int i = 0; i < 2; i++) {
        OK(clSetKernelArg(both[i], 0, sizeof buffer, &buffer));
        OK(clSetKernelArg(both[i], 1, sizeof n, &n));
    }

    CHECK(order(mode, right) || shared(mode, right) || objects(mode, right) || failures(mode, right) || waste(mode, right, slow));

    OK(clReleaseMemObject(buffer));
    OK(clReleaseMemObject(second));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseCommandQueue(other));
    OK(clReleaseKernel(kernel));
    OK(clReleaseKernel(slow));
    OK(clReleaseProgram(built));
    dev_close(&d);
    expect_print();
    return 0;
}
