/* Device times as CLUST takes them: the profiling property on every queue, an event for
 * every command, and in its completion callback four profiling queries, two queries of
 * the event, and one record.
 */
#include "clpeer.h"
#include "clpeer_tp.h"

#include <stdint.h>

int device_times_wanted(void)
{
    return lttng_ust_tracepoint_enabled(clpeer, command);
}

#pragma GCC visibility push(default)
cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties how, cl_int *err)
{
    if (device_times_wanted())
        how |= CL_QUEUE_PROFILING_ENABLE;
    return REAL(clCreateCommandQueue)(context, device, how, err);
}

cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                    const cl_queue_properties *given, cl_int *err)
{
    enum { MOST = 64 };
    cl_queue_properties list[MOST + 3];
    int n = 0, has = 0;
    if (!device_times_wanted())
        return REAL(clCreateCommandQueueWithProperties)(context, device, given, err);
    for (; given && given[n] && n < MOST; n += 2) {
        list[n] = given[n];
        list[n + 1] = given[n + 1];
        if (given[n] == CL_QUEUE_PROPERTIES) {
            list[n + 1] |= CL_QUEUE_PROFILING_ENABLE;
            has = 1;
        }
    }
    if (!has) {
        list[n++] = CL_QUEUE_PROPERTIES;
        list[n++] = CL_QUEUE_PROFILING_ENABLE;
    }
    list[n] = 0;
    return REAL(clCreateCommandQueueWithProperties)(context, device, list, err);
}

#pragma GCC visibility pop

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *unused)
{
    static const cl_profiling_info counters[4] = {
        CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
        CL_PROFILING_COMMAND_END};
    (void)unused;
    uint64_t times[4] = {0};
    cl_command_queue queue = NULL;
    cl_command_type type = 0;
    for (int i = 0; i < 4; i++)
        REAL(clGetEventProfilingInfo)(event, counters[i], sizeof times[i], &times[i], NULL);
    REAL(clGetEventInfo)(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL);
    REAL(clGetEventInfo)(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
    lttng_ust_tracepoint(clpeer, command, queue, event, type, status, times);
    REAL(clReleaseEvent)(event);
}

void device_times_of(cl_event event, int own)
{
    if (!own)
        REAL(clRetainEvent)(event);
    if (REAL(clSetEventCallback)(event, CL_COMPLETE, on_complete, NULL) != CL_SUCCESS)
        REAL(clReleaseEvent)(event);
}
