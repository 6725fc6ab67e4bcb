/* Gizmo: an invented API for invented devices, by which it is tested that an API is one folder.
 *
 * It has what real ones have: devices with clocks of their own, queues whose commands run
 * asynchronously, events, functions that are handed out by address; and what makes tracers
 * mistake one API for another: handles are numbers that the program chooses, so that they
 * may equal those of any other API, and one function is called as one of CUDA's is.
 */
#ifndef GIZMO_H
#define GIZMO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
typedef enum gizmoResult_enum {
    GIZMO_SUCCESS = 0,
    GIZMO_NOT_READY = 1,
    GIZMO_INVALID_HANDLE = 2,
    GIZMO_INVALID_VALUE = 3,
    GIZMO_NO_MEMORY = 4,
    GIZMO_NAME_TAKEN = 5
} gizmoResult;

typedef struct gizmoDevice_object *gizmoDevice;
typedef struct gizmoQueue_object *gizmoQueue;
typedef struct gizmoKernel_object *gizmoKernel;
typedef struct gizmoEvent_object *gizmoEvent;

/* When a command was where, in nanoseconds of its device's clock. */
typedef struct gizmoTimes {
    uint64_t queued;
    uint64_t submitted;
    uint64_t started;
    uint64_t ended;
} gizmoTimes;

struct gizmoTable;

gizmoResult gizmoVersion(uint32_t *version);
const char *gizmoResultText(gizmoResult result);

/* `handle` is what the device, queue or kernel will be known by. */
gizmoResult gizmoDeviceCount(uint32_t *count);
gizmoResult gizmoDeviceOpen(uint32_t ordinal, uint64_t handle, gizmoDevice *device);
gizmoResult gizmoDeviceName(gizmoDevice device, char *name, size_t size);
gizmoResult gizmoDeviceTime(gizmoDevice device, uint64_t *nanoseconds);
gizmoResult gizmoQueueCreate(gizmoDevice device, uint64_t handle, gizmoQueue *queue);
gizmoResult gizmoQueueFinish(gizmoQueue queue);
gizmoResult gizmoQueueDestroy(gizmoQueue queue);
gizmoResult gizmoKernelCreate(const char *name, uint64_t handle, gizmoKernel *kernel);

gizmoResult gizmoAllocate(gizmoDevice device, size_t size, void **memory);
gizmoResult gizmoFree(void *memory);

/* These return before the command has run. `done` may be NULL. */
gizmoResult gizmoRun(gizmoQueue queue, gizmoKernel kernel, uint32_t groups, uint32_t group_size,
                     uint32_t microseconds, gizmoEvent *done);
gizmoResult gizmoWrite(gizmoQueue queue, void *memory, const void *from, size_t size, gizmoEvent *done);
gizmoResult gizmoRead(gizmoQueue queue, const void *memory, void *to, size_t size, gizmoEvent *done);

gizmoResult gizmoEventStatus(gizmoEvent event);
gizmoResult gizmoEventWait(gizmoEvent event);
gizmoResult gizmoEventTimes(gizmoEvent event, gizmoTimes *times);
gizmoResult gizmoEventRetain(gizmoEvent event);
gizmoResult gizmoEventRelease(gizmoEvent event);

/* Waits for a queue, at most so long. CUDA's function of this name takes no argument. */
gizmoResult cuCtxSynchronize(gizmoQueue queue, uint32_t milliseconds);

/* The table has `size` set by the caller; what fits is filled in. */
gizmoResult gizmoGetTable(uint32_t version, struct gizmoTable *table);
void *gizmoGetFunction(const char *name);

typedef struct gizmoTable {
    size_t size;
    gizmoResult (*queueFinish)(gizmoQueue queue);
    gizmoResult (*run)(gizmoQueue queue, gizmoKernel kernel, uint32_t groups, uint32_t group_size,
                       uint32_t microseconds, gizmoEvent *done);
    gizmoResult (*write)(gizmoQueue queue, void *memory, const void *from, size_t size, gizmoEvent *done);
    gizmoResult (*read)(gizmoQueue queue, const void *memory, void *to, size_t size, gizmoEvent *done);
    gizmoResult (*synchronize)(gizmoQueue queue, uint32_t milliseconds);
} gizmoTable;

#ifdef __cplusplus
}
#endif

#endif
