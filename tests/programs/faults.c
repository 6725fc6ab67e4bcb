/* One planted fault, or none: what `lint` and `why` are to find.
 *
 *   faults clean|leak|events|blocking|arguments|polls|builds|bounds|sleep
 *
 * All do the same work, 20 launches on one buffer of 4096 bytes, one read at the end; `clean` does it as one should:
 * arguments are set and the program is built once, each event is waited for and given back, and so is all else.
 *
 * leak:      three buffers are never given back
 * events:    the events of the launches are never given back
 * blocking:  a blocking read after each launch
 * arguments: each launch sets the arguments to what they are
 * polls:     200000 questions for the state of an event
 * builds:    after each five launches the program is built again from the same text
 * bounds:    a read goes beyond the end of the buffer, and fails
 * sleep:     a thread named `sleeper` does the launches, waits for each and sleeps 20 ms before the next
 */
#include "cl_util.h"

#include <pthread.h>

enum { LAUNCHES = 20, ITEMS = 1024, NAPS = 4 };

static const char *source = "__kernel void inc(__global int *v) { v[get_global_id(0)] += 1; }\n";

static struct dev d;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem buffer;
static int values[ITEMS];

static void launch(cl_event *event)
{
    size_t items = ITEMS;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, event));
}

static void *sleeper(void *unused)
{
    (void)unused;
    CHECK(pthread_setname_np(pthread_self(), "sleeper") == 0);
    for (int i = 0; i < NAPS; i++) {
        struct timespec nap = {0, 20 * 1000 * 1000};
        if (i > 0)
            nanosleep(&nap, NULL);
        launch(NULL);
        OK(clFinish(queue));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *fault = argv[1];
    int leak = !strcmp(fault, "leak"), events = !strcmp(fault, "events");
    int blocking = !strcmp(fault, "blocking"), arguments = !strcmp(fault, "arguments");
    int polls = !strcmp(fault, "polls"), builds = !strcmp(fault, "builds");
    int bounds = !strcmp(fault, "bounds"), sleeps = !strcmp(fault, "sleep");
    int any = leak || events || blocking || arguments || polls || builds || bounds || sleeps;
    CHECK(any || !strcmp(fault, "clean"));

    d = dev_open();
    cl_program program = build(&d, source, NULL);
    queue = MAKE(clCreateCommandQueueWithProperties(d.context, d.device, NULL, &err));
    kernel = MAKE(clCreateKernel(program, "inc", &err));
    buffer = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof values, values, &err));
    for (int i = 0; leak && i < 3; i++)
        MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 1000, NULL, &err));
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));

    int launches = LAUNCHES;
    if (sleeps) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        launches = NAPS;
    } else {
        cl_event all[LAUNCHES];
        for (int i = 0; i < LAUNCHES; i++) {
            if (arguments)
                OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
            launch(&all[i]);
            if (builds && i % 5 == 4)
                OK(clReleaseProgram(build(&d, source, NULL)));
            if (blocking)
                OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
        }
        if (polls) {
            cl_event user = MAKE(clCreateUserEvent(d.context, &err));
            for (int i = 0; i < 200000; i++) {
                cl_int state;
                OK(clGetEventInfo(user, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
            }
            OK(clSetUserEventStatus(user, CL_COMPLETE));
            OK(clReleaseEvent(user));
        }
        OK(clWaitForEvents(LAUNCHES, all));
        for (int i = 0; !events && i < LAUNCHES; i++)
            OK(clReleaseEvent(all[i]));
    }
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    for (int i = 0; i < ITEMS; i++)
        CHECK(values[i] == launches);
    if (bounds) {
        static char twice[2 * sizeof values];
        cl_int code = CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof twice, twice, 0, NULL, NULL));
        CHECK(code == CL_INVALID_VALUE);
    }

    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    dev_close(&d);
    expect_print();
    return 0;
}
