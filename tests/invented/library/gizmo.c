/* The invented API's library: two devices, each with a clock of its own, and a thread for
 * each queue that runs its commands. */
#include "gizmo.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 2
#define OBJECTS 64

struct event {
    struct event *next;
    int references;
    int done;
    gizmoTimes times;
    struct queue *queue;
    const void *from;
    void *to;
    size_t size;
    unsigned microseconds;
};

struct device {
    uint64_t handle;
    int open;
};

struct queue {
    uint64_t handle;
    int used, ends;
    unsigned device;
    pthread_t thread;
    struct event *first, *last;
    unsigned running;
};

struct kernel {
    uint64_t handle;
    int used;
};

static struct device devices[DEVICES];
static struct queue queues[OBJECTS];
static struct kernel kernels[OBJECTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static uint64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The first device's clock began long ago, the second's is faster than the host's by 1/20000. */
static uint64_t device_time(unsigned ordinal)
{
    static uint64_t begun;
    uint64_t now = monotonic();
    if (!__atomic_load_n(&begun, __ATOMIC_RELAXED)) {
        uint64_t none = 0;
        __atomic_compare_exchange_n(&begun, &none, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    uint64_t since = now - __atomic_load_n(&begun, __ATOMIC_RELAXED);
    return ordinal ? 1000000000u + since + since / 20000 : 9000000000000000u + since;
}

static struct device *device_of(gizmoDevice handle)
{
    for (unsigned i = 0; i < DEVICES; i++)
        if (devices[i].open && devices[i].handle == (uint64_t)(uintptr_t)handle)
            return &devices[i];
    return NULL;
}

static struct queue *queue_of(gizmoQueue handle)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        if (queues[i].used && queues[i].handle == (uint64_t)(uintptr_t)handle)
            return &queues[i];
    return NULL;
}

static void release(struct event *event)
{
    if (--event->references == 0)
        free(event);
}

static void *work(void *argument)
{
    struct queue *queue = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!queue->first && !queue->ends)
            pthread_cond_wait(&changed, &lock);
        struct event *event = queue->first;
        if (!event)
            break;
        queue->first = event->next;
        if (!queue->first)
            queue->last = NULL;
        event->times.submitted = device_time(queue->device);
        pthread_mutex_unlock(&lock);
        event->times.started = device_time(queue->device);
        uint64_t until = monotonic() + event->microseconds * 1000ull;
        if (event->size)
            memcpy(event->to, event->from, event->size);
        while (monotonic() < until) {
            struct timespec moment = { .tv_nsec = 20000 };
            nanosleep(&moment, NULL);
        }
        uint64_t ended = device_time(queue->device);
        pthread_mutex_lock(&lock);
        event->times.ended = ended;
        event->done = 1;
        queue->running--;
        release(event);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static gizmoResult enqueue(gizmoQueue handle, struct event command, gizmoEvent *place)
{
    struct event *event = malloc(sizeof *event);
    if (!event)
        return GIZMO_NO_MEMORY;
    pthread_mutex_lock(&lock);
    struct queue *queue = queue_of(handle);
    if (!queue) {
        pthread_mutex_unlock(&lock);
        free(event);
        return GIZMO_INVALID_HANDLE;
    }
    *event = command;
    event->references = place ? 2 : 1;
    event->queue = queue;
    event->times.queued = device_time(queue->device);
    if (queue->last)
        queue->last->next = event;
    else
        queue->first = event;
    queue->last = event;
    queue->running++;
    if (place)
        *place = (gizmoEvent)event;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoVersion(uint32_t *version)
{
    if (!version)
        return GIZMO_INVALID_VALUE;
    *version = 3;
    return GIZMO_SUCCESS;
}

EXPORT const char *gizmoResultText(gizmoResult result)
{
    static const char *texts[] = { "success", "not ready", "no such object", "an argument is wrong",
                                   "no memory", "the handle is another object's" };
    return (unsigned)result < sizeof texts / sizeof *texts ? texts[result] : "unknown result";
}

EXPORT gizmoResult gizmoDeviceCount(uint32_t *count)
{
    if (!count)
        return GIZMO_INVALID_VALUE;
    *count = DEVICES;
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoDeviceOpen(uint32_t ordinal, uint64_t handle, gizmoDevice *device)
{
    if (ordinal >= DEVICES || !handle || !device)
        return GIZMO_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int taken = devices[ordinal].open || device_of((gizmoDevice)(uintptr_t)handle);
    if (!taken)
        devices[ordinal] = (struct device){ .handle = handle, .open = 1 };
    pthread_mutex_unlock(&lock);
    *device = (gizmoDevice)(uintptr_t)handle;
    return taken ? GIZMO_NAME_TAKEN : GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoDeviceName(gizmoDevice handle, char *name, size_t size)
{
    struct device *device = device_of(handle);
    if (!device)
        return GIZMO_INVALID_HANDLE;
    if (!name || !size)
        return GIZMO_INVALID_VALUE;
    snprintf(name, size, "Gizmo %c", 'A' + (int)(device - devices));
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoDeviceTime(gizmoDevice handle, uint64_t *nanoseconds)
{
    struct device *device = device_of(handle);
    if (!device)
        return GIZMO_INVALID_HANDLE;
    *nanoseconds = device_time((unsigned)(device - devices));
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoQueueCreate(gizmoDevice handle, uint64_t name, gizmoQueue *queue)
{
    if (!name || !queue)
        return GIZMO_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct device *device = device_of(handle);
    gizmoResult result = device ? GIZMO_NO_MEMORY : GIZMO_INVALID_HANDLE;
    if (queue_of((gizmoQueue)(uintptr_t)name))
        result = GIZMO_NAME_TAKEN;
    for (unsigned i = 0; i < OBJECTS && result == GIZMO_NO_MEMORY; i++) {
        if (queues[i].used)
            continue;
        queues[i] = (struct queue){ .handle = name, .used = 1, .device = (unsigned)(device - devices) };
        if (pthread_create(&queues[i].thread, NULL, work, &queues[i])) {
            queues[i].used = 0;
            break;
        }
        *queue = (gizmoQueue)(uintptr_t)name;
        result = GIZMO_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static gizmoResult wait_for(gizmoQueue handle, uint64_t until)
{
    pthread_mutex_lock(&lock);
    struct queue *queue = queue_of(handle);
    gizmoResult result = queue ? GIZMO_SUCCESS : GIZMO_INVALID_HANDLE;
    while (queue && queue->running && result == GIZMO_SUCCESS) {
        pthread_cond_wait(&changed, &lock);
        if (queue->running && monotonic() > until)
            result = GIZMO_NOT_READY;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT gizmoResult gizmoQueueFinish(gizmoQueue queue)
{
    return wait_for(queue, UINT64_MAX);
}

EXPORT gizmoResult cuCtxSynchronize(gizmoQueue queue, uint32_t milliseconds)
{
    return wait_for(queue, monotonic() + milliseconds * 1000000ull);
}

EXPORT gizmoResult gizmoQueueDestroy(gizmoQueue handle)
{
    pthread_mutex_lock(&lock);
    struct queue *queue = queue_of(handle);
    if (queue) {
        queue->ends = 1;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (!queue)
        return GIZMO_INVALID_HANDLE;
    pthread_join(queue->thread, NULL);
    queue->used = 0;
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoKernelCreate(const char *name, uint64_t handle, gizmoKernel *kernel)
{
    if (!name || !handle || !kernel)
        return GIZMO_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    gizmoResult result = GIZMO_NO_MEMORY;
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (kernels[i].used)
            continue;
        kernels[i] = (struct kernel){ .handle = handle, .used = 1 };
        *kernel = (gizmoKernel)(uintptr_t)handle;
        result = GIZMO_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT gizmoResult gizmoAllocate(gizmoDevice device, size_t size, void **memory)
{
    if (!device_of(device))
        return GIZMO_INVALID_HANDLE;
    *memory = malloc(size);
    return *memory ? GIZMO_SUCCESS : GIZMO_NO_MEMORY;
}

EXPORT gizmoResult gizmoFree(void *memory)
{
    free(memory);
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoRun(gizmoQueue queue, gizmoKernel kernel, uint32_t groups, uint32_t group_size,
                            uint32_t microseconds, gizmoEvent *done)
{
    if (!kernel || !groups || !group_size)
        return GIZMO_INVALID_VALUE;
    return enqueue(queue, (struct event){ .microseconds = microseconds }, done);
}

EXPORT gizmoResult gizmoWrite(gizmoQueue queue, void *memory, const void *from, size_t size, gizmoEvent *done)
{
    return enqueue(queue, (struct event){ .to = memory, .from = from, .size = size }, done);
}

EXPORT gizmoResult gizmoRead(gizmoQueue queue, const void *memory, void *to, size_t size, gizmoEvent *done)
{
    return enqueue(queue, (struct event){ .to = to, .from = memory, .size = size }, done);
}

EXPORT gizmoResult gizmoEventStatus(gizmoEvent handle)
{
    struct event *event = (struct event *)handle;
    if (!event)
        return GIZMO_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    int done = event->done;
    pthread_mutex_unlock(&lock);
    return done ? GIZMO_SUCCESS : GIZMO_NOT_READY;
}

EXPORT gizmoResult gizmoEventWait(gizmoEvent handle)
{
    struct event *event = (struct event *)handle;
    if (!event)
        return GIZMO_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    while (!event->done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoEventTimes(gizmoEvent handle, gizmoTimes *times)
{
    struct event *event = (struct event *)handle;
    if (!event || !times)
        return GIZMO_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int done = event->done;
    *times = event->times;
    pthread_mutex_unlock(&lock);
    return done ? GIZMO_SUCCESS : GIZMO_NOT_READY;
}

EXPORT gizmoResult gizmoEventRetain(gizmoEvent event)
{
    if (!event)
        return GIZMO_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    ((struct event *)event)->references++;
    pthread_mutex_unlock(&lock);
    return GIZMO_SUCCESS;
}

EXPORT gizmoResult gizmoEventRelease(gizmoEvent event)
{
    if (!event)
        return GIZMO_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    release((struct event *)event);
    pthread_mutex_unlock(&lock);
    return GIZMO_SUCCESS;
}

/* Newer than the header. */
EXPORT gizmoResult gizmoTune(uint32_t device, uint32_t percent)
{
    return device < DEVICES && percent <= 100 ? GIZMO_SUCCESS : GIZMO_INVALID_VALUE;
}

EXPORT gizmoResult gizmoGetTable(uint32_t version, gizmoTable *table)
{
    gizmoTable all = { sizeof all, gizmoQueueFinish, gizmoRun, gizmoWrite, gizmoRead, cuCtxSynchronize };
    if (version > 3 || !table || table->size < sizeof table->size || table->size > sizeof all)
        return GIZMO_INVALID_VALUE;
    all.size = table->size;
    memcpy(table, &all, table->size);
    return GIZMO_SUCCESS;
}

EXPORT void *gizmoGetFunction(const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } all[] = {
        { "gizmoRun", gizmoRun },
        { "gizmoQueueFinish", gizmoQueueFinish },
        { "cuCtxSynchronize", cuCtxSynchronize },
        { "gizmoTune", gizmoTune },
    };
    for (unsigned i = 0; name && i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].function;
    return NULL;
}
