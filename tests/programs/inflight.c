/* Many commands in flight at a time: kernels that wait for a user event, which is set when all of
 * them have been enqueued.
 *
 *   inflight [kernels=60000] [plain|events|unordered|threads|free|freeevents]
 *
 * plain:     one queue in order, no events
 * events:    the program keeps an event of each, and finds its own reference only
 * unordered: a queue that keeps no order
 * threads:   a quarter in each of four threads, each with a queue of its own; they end before any
 *            kernel runs
 * free…:     as plain and events, and nothing holds the kernels back: an implementation may take only so
 *            many that wait
 */
#include "cl_util.h"

#include <pthread.h>

static const char *source = "__kernel void tiny(__global int *v) { v[0] = 1; }\n";

static struct dev d;
static cl_kernel kernel;
static cl_event gate;

static void launch(cl_command_queue queue, cl_event *event)
{
    size_t one = 1;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, gate ? 1 : 0, gate ? &gate : NULL, event));
}

static void *quarter(void *argument)
{
    cl_command_queue *queue = argument;
    cl_int err;
    long n = *(long *)(queue + 1);
    *queue = CL(clCreateCommandQueue(d.context, d.device, 0, &err));
    CHECK(*queue);
    for (long i = 0; i < n; i++)
        launch(*queue, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    long n = arg_or(argc, argv, 1, 60000);
    const char *mode = argc > 2 ? argv[2] : "plain";
    d = dev_open();
    cl_program program = build(&d, source, NULL);
    kernel = MAKE(clCreateKernel(program, "tiny", &err));
    cl_mem v = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, sizeof(int), NULL, &err));
    OK(clSetKernelArg(kernel, 0, sizeof v, &v));
    if (strncmp(mode, "free", 4))
        gate = MAKE(clCreateUserEvent(d.context, &err));
    cl_event *events = !strstr(mode, "events") ? NULL : calloc(n, sizeof *events);
    struct { cl_command_queue queue; long n; } part[4] = {{0}};
    int queues = 1;
    if (!strcmp(mode, "threads")) {
        pthread_t thread[4];
        queues = 4;
        for (int i = 0; i < queues; i++) {
            part[i].n = n / queues;
            CHECK(!pthread_create(&thread[i], NULL, quarter, &part[i]));
        }
        for (int i = 0; i < queues; i++)
            CHECK(!pthread_join(thread[i], NULL));
    } else {
        cl_command_queue_properties order =
            strcmp(mode, "unordered") ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        part[0].queue = MAKE(clCreateCommandQueue(d.context, d.device, order, &err));
        for (long i = 0; i < n; i++)
            launch(part[0].queue, events ? &events[i] : NULL);
    }
    for (long i = 0; events && i < n; i++) {
        cl_uint references = 0;
        OK(clGetEventInfo(events[i], CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL));
        /* The implementation has some of its own while a command waits, and PoCL's queue has one of
         * the last. */
        static cl_uint first;
        first = first ? first : references;
        CHECK(references <= first || i == n - 1);
    }
    if (gate)
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
    for (int i = 0; i < queues; i++)
        OK(clFinish(part[i].queue));
    for (long i = 0; events && i < n; i++)
        OK(clReleaseEvent(events[i]));
    for (int i = 0; i < queues; i++)
        OK(clReleaseCommandQueue(part[i].queue));
    if (gate)
        OK(clReleaseEvent(gate));
    OK(clReleaseMemObject(v));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    dev_close(&d);
    printf("%ld kernels\n", n);
    expect_print();
    return 0;
}
