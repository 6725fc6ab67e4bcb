/* The peer's parts: clpeer.c has the wrappers, clpeer_device.c the device times,
 * clpeer_tp.h the events. */
#ifndef CLPEER_H
#define CLPEER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

/* The real function. The peer links to no loader: as every interposer does, it takes
 * whatever comes next. */
#define REAL(name) (*real_##name)
#define DECLARE(name) extern __typeof__(&name) real_##name

DECLARE(clGetPlatformIDs);
DECLARE(clSetKernelArg);
DECLARE(clEnqueueNDRangeKernel);
DECLARE(clEnqueueReadBuffer);
DECLARE(clFinish);
DECLARE(clGetEventInfo);
DECLARE(clGetKernelInfo);
DECLARE(clCreateCommandQueue);
DECLARE(clCreateCommandQueueWithProperties);
DECLARE(clGetEventProfilingInfo);
DECLARE(clSetEventCallback);
DECLARE(clRetainEvent);
DECLARE(clReleaseEvent);

/* Whether a session wants the device times. */
int device_times_wanted(void);

/* After a successful enqueue: have the event's times recorded at its completion. The
 * peer's own event is released then; the program's is retained until then. */
void device_times_of(cl_event event, int own);

#endif
