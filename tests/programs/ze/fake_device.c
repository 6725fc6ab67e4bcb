/* The device of the fake driver: a thread that runs commands one after the other, each for as long as the program can
 * know, by a counter with few bits that begins anew. FAKE_ZE_TIMER has ticks a second, bits, the milliseconds until the
 * counter begins anew, and 1 if the driver knows the properties of before 1.2 alone. What ran, and when, the program
 * asks for by fake_say_ran. */
#include "fake_order.h"

#include <pthread.h>
#include <time.h>

/* ---- The counter */

static uint64_t hertz = 19200000, bits = 32, first;
static unsigned long until_new = 100000;
static int is_old;
static struct timespec began;

static void start_counter(void) {
    const char *timer = getenv("FAKE_ZE_TIMER");
    unsigned long h, b, ms;
    if (timer && sscanf(timer, "%lu %lu %lu %d", &h, &b, &ms, &is_old) == 4)
        hertz = h, bits = b, until_new = ms;
    clock_gettime(CLOCK_MONOTONIC, &began);
    first = (1ul << bits) - (uint64_t)((unsigned __int128)hertz * until_new / 1000);
}

static uint64_t elapsed(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(now.tv_sec - began.tv_sec) * 1000000000 + (uint64_t)now.tv_nsec - (uint64_t)began.tv_nsec;
}

/* With all its bits. */
static uint64_t counter(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_counter);
    return first + (uint64_t)((unsigned __int128)elapsed() * hertz / 1000000000);
}

void fake_timer(ze_device_properties_t *properties) {
    counter();
    int newer = properties->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 && !is_old;
    properties->timerResolution = newer ? hertz : 1000000000 / hertz;
    properties->timestampValidBits = (uint32_t)bits + 4;
    properties->kernelTimestampValidBits = (uint32_t)bits;
}

static uint64_t valid(uint64_t ticks, uint64_t valid_bits) {
    return ticks & ((1ul << valid_bits) - 1);
}

static uint64_t of_kernels(uint64_t ticks) {
    return valid(ticks, bits);
}

EXPORT ze_result_t zeDeviceGetGlobalTimestamps(ze_device_handle_t d, uint64_t *host, uint64_t *device) {
    COUNT(zeDeviceGetGlobalTimestamps);
    (void)d;
    uint64_t now = counter();
    /* No clock that anybody else knows. */
    *host = 77;
    *device = valid(now, bits + 4);
    return ZE_RESULT_SUCCESS;
}

/* ---- What runs */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct { struct job job; uint64_t start, end; } *all;
static unsigned long put, done, room;
static int is_held;

__attribute__((noreturn)) static void *runs(void *nothing) {
    (void)nothing;
    uint64_t last = 0;
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (done == put || is_held)
            pthread_cond_wait(&changed, &mutex);
        struct job job = all[done].job;
        pthread_mutex_unlock(&mutex);
        uint64_t start = counter(), anew = 1ul << bits;
        if (start <= last)
            start = last + 1;
        uint64_t end = start + job.duration;
        if (job.across && start < anew && end < anew + job.duration)
            end = anew + job.duration;
        while (counter() < end)
            nanosleep(&(struct timespec){0, 20000}, NULL);
        last = end;
        pthread_mutex_lock(&mutex);
        struct moment now = {done + 1, job.queue};
        if (job.is_barrier)
            job.queue->barrier = done + 1;
        if (job.query)
            copies(job.query, now, of_kernels);
        if (job.resets)
            resets(job.resets, now);
        if (job.signals)
            signals(job.signals, now);
        if (job.signals && (!job.signals->counts || job.signals->means == job.number)) {
            job.signals->times[0] = start;
            job.signals->times[1] = end;
            job.signals->is_set = 1;
        }
        if (job.fence) {
            job.fence->is_set = job.fence->is_fence = 1;
            job.fence->written = now;
        }
        all[done].start = start;
        all[done].end = end;
        done++;
        pthread_cond_broadcast(&changed);
    }
}

static void begin(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, runs, NULL);
}

/* Returns its number, from 1. */
static unsigned long submit(struct job job) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    pthread_mutex_lock(&mutex);
    if (put == room) {
        room = room ? 2 * room : 1024;
        all = realloc(all, room * sizeof *all);
    }
    /* A command that signals such an event makes it mean this command. */
    job.number = put;
    if (job.signals && job.signals->counts) {
        job.signals->is_set = 0;
        job.signals->means = put;
    }
    all[put].job = job;
    unsigned long number = ++put;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return number;
}

static void wait_for_all(void) {
    pthread_mutex_lock(&mutex);
    unsigned long all_now = put;
    while (done < all_now)
        pthread_cond_wait(&changed, &mutex);
    if (host_knows < all_now)
        host_knows = all_now;
    pthread_mutex_unlock(&mutex);
}

/* Until no command uses a list, or an event. */
static void wait_for_users(const struct object *object) {
    pthread_mutex_lock(&mutex);
    for (unsigned long i = done; i < put; i++) {
        const struct job *job = &all[i].job;
        int is_used = job->list == object || job->signals == object || job->resets == object || uses(job, object);
        while (is_used && done <= i)
            pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

/* What the program, or who traces it, takes away while commands that copy times use it. */
static void is_free(const struct object *event, const void *memory, const char *what) {
    pthread_mutex_lock(&mutex);
    for (unsigned long i = done; i < put; i++) {
        const struct job *job = &all[i].job;
        if ((event && uses(job, event)) || (memory && job->query && job->query->to == memory))
            is_bad(what);
    }
    pthread_mutex_unlock(&mutex);
}

void fake_freed(const void *memory) {
    is_free(NULL, memory, "memory is freed that times are copied to");
}

/* A list is executed, or ends. */
static void is_idle(const struct object *list, const char *what) {
    pthread_mutex_lock(&mutex);
    if (list && list->copies_times && list->last > done)
        is_bad(what);
    pthread_mutex_unlock(&mutex);
}

static ze_result_t wait_for(struct object *object, uint64_t timeout) {
    pthread_mutex_lock(&mutex);
    while (!object->is_set && timeout && done < put)
        pthread_cond_wait(&changed, &mutex);
    int is_set = object->is_set;
    if (is_set && object->is_fence && host_knows < object->written.number)
        host_knows = object->written.number;
    pthread_mutex_unlock(&mutex);
    return is_set ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

/* Whoever appends waits while the driver is busy. */
EXPORT void fake_busy(int busy) {
    if (busy)
        pthread_mutex_lock(&mutex);
    else
        pthread_mutex_unlock(&mutex);
}

/* Nothing begins while it is held. */
EXPORT void fake_hold(int hold) {
    pthread_mutex_lock(&mutex);
    is_held = hold;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* What ran so far, in its order, with all bits of the counter, and whether one was across its beginning. */
EXPORT int fake_say_ran(void) {
    int across = 0;
    wait_for_all();
    printf("TIMER hertz=%lu old=%d\n", hertz, is_old);
    for (unsigned long i = 0; i < done; i++) {
        const struct job *job = &all[i].job;
        if (job->kind)
            printf("RAN kind=%s name=%s start=%lu end=%lu\n", job->kind, *job->name ? job->name : "-", all[i].start,
                   all[i].end);
        across |= all[i].start < 1ul << bits && all[i].end >= 1ul << bits;
    }
    printf("BAD %lu %s, UNRESET %lu\n", bad, first_bad, unreset);
    return across;
}

/* ---- Queues and lists */

EXPORT ze_result_t zeContextDestroy(ze_context_handle_t context) {
    COUNT(zeContextDestroy);
    wait_for_all();
    return end(context);
}
EXPORT ze_result_t zeCommandQueueCreate(ze_context_handle_t c, ze_device_handle_t d, const ze_command_queue_desc_t *desc,
                                        ze_command_queue_handle_t *queue) {
    COUNT(zeCommandQueueCreate);
    (void)c, (void)d, (void)desc;
    return make(queue, NULL);
}
EXPORT ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t queue) {
    COUNT(zeCommandQueueDestroy);
    wait_for_all();
    return end(queue);
}
EXPORT ze_result_t zeCommandQueueSynchronize(ze_command_queue_handle_t queue, uint64_t timeout) {
    COUNT(zeCommandQueueSynchronize);
    (void)queue, (void)timeout;
    wait_for_all();
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t list, uint64_t timeout) {
    COUNT(zeCommandListHostSynchronize);
    (void)list, (void)timeout;
    wait_for_all();
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeCommandListCreate(ze_context_handle_t c, ze_device_handle_t d, const ze_command_list_desc_t *desc,
                                       ze_command_list_handle_t *list) {
    COUNT(zeCommandListCreate);
    (void)c, (void)d;
    ze_result_t result = make(list, NULL);
    of((void *)*list)->ordinal = (int)desc->commandQueueGroupOrdinal;
    return result;
}
EXPORT ze_result_t zeCommandListCreateImmediate(ze_context_handle_t c, ze_device_handle_t d,
                                                const ze_command_queue_desc_t *desc, ze_command_list_handle_t *list) {
    COUNT(zeCommandListCreateImmediate);
    (void)c, (void)d;
    ze_result_t result = make(list, NULL);
    of((void *)*list)->immediate = 1;
    of((void *)*list)->in_order = (desc->flags & 2) != 0;
    return result;
}
EXPORT ze_result_t zeCommandListCreateCloneExp(ze_command_list_handle_t list, ze_command_list_handle_t *clone) {
    COUNT(zeCommandListCreateCloneExp);
    struct object *from = of((void *)list);
    ze_result_t result = make(clone, NULL);
    struct object *to = of((void *)*clone);
    to->recorded = from->recorded;
    to->jobs = calloc((size_t)from->recorded + 1, sizeof(struct job));
    memcpy(to->jobs, from->jobs, (size_t)from->recorded * sizeof(struct job));
    return result;
}
EXPORT ze_result_t zeCommandListDestroy(ze_command_list_handle_t list) {
    COUNT(zeCommandListDestroy);
    if (of((void *)list)->immediate)
        wait_for_all();
    is_idle(of((void *)list), "a list that copies times is destroyed while it runs");
    wait_for_users(of((void *)list));
    return end(list);
}
EXPORT ze_result_t zeCommandListReset(ze_command_list_handle_t list) {
    COUNT(zeCommandListReset);
    of((void *)list)->recorded = 0;
    return ZE_RESULT_SUCCESS;
}
/* Lists run one after the other. */
static ze_result_t execute(struct object *queue, uint32_t n, ze_command_list_handle_t *lists) {
    for (uint32_t i = 0; i < n && n > 1; i++)
        if (of((void *)lists[i])->copies_times && refuses("mixed"))
            return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
    for (uint32_t i = 0; i < n; i++) {
        struct object *list = of((void *)lists[i]);
        is_idle(list, "a list that copies times is executed again while it runs");
        int before = list->executions++;
        for (int j = 0; j < list->recorded; j++) {
            struct job job = list->jobs[j];
            job.queue = queue;
            job.list = list;
            job.duration += (uint64_t)job.grows * (uint64_t)before;
            list->last = submit(job);
        }
    }
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t queue, uint32_t n,
                                                     ze_command_list_handle_t *lists, ze_fence_handle_t fence) {
    COUNT(zeCommandQueueExecuteCommandLists);
    ze_result_t result = execute(of((void *)queue), n, lists);
    if (fence && result == ZE_RESULT_SUCCESS)
        submit((struct job){.fence = of((void *)fence), .queue = of((void *)queue)});
    return result;
}
EXPORT ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t at_once, uint32_t n,
                                                               ze_command_list_handle_t *lists, ze_event_handle_t event,
                                                               uint32_t waits, ze_event_handle_t *events) {
    COUNT(zeCommandListImmediateAppendCommandListsExp);
    (void)waits, (void)events;
    struct object *queue = of((void *)at_once);
    ze_result_t result = execute(queue, n, lists);
    if (event && result == ZE_RESULT_SUCCESS)
        submit((struct job){.signals = of((void *)event), .queue = queue});
    return result;
}

static ze_result_t append(ze_command_list_handle_t handle, struct job job) {
    struct object *list = of((void *)handle);
    if (!list)
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (list->immediate) {
        job.queue = list;
        submit(job);
        return ZE_RESULT_SUCCESS;
    }
    list->jobs = realloc(list->jobs, (size_t)(list->recorded + 1) * sizeof job);
    list->jobs[list->recorded++] = job;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t launch(ze_command_list_handle_t list, ze_kernel_handle_t kernel, const ze_group_count_t *groups,
                          ze_event_handle_t event) {
    if (!kernel)
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    struct job job = {.kind = "kernel", .signals = of((void *)event)};
    strcpy(job.name, of((void *)kernel)->text);
    job.across = strcmp(job.name, "across") == 0;
    job.duration = 1000;
    job.grows = strncmp(job.name, "grows", 5) == 0 ? 400 : 0;
    if (groups)
        job.duration += 100ul * groups->groupCountX * groups->groupCountY * groups->groupCountZ;
    return append(list, job);
}

EXPORT ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                   const ze_group_count_t *groups, ze_event_handle_t event, uint32_t n,
                                                   ze_event_handle_t *waits) {
    COUNT(zeCommandListAppendLaunchKernel);
    (void)n, (void)waits;
    return launch(list, kernel, groups, event);
}
EXPORT ze_result_t zeCommandListAppendLaunchCooperativeKernel(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                              const ze_group_count_t *groups, ze_event_handle_t event,
                                                              uint32_t n, ze_event_handle_t *waits) {
    COUNT(zeCommandListAppendLaunchCooperativeKernel);
    (void)n, (void)waits;
    return launch(list, kernel, groups, event);
}
EXPORT ze_result_t zeCommandListAppendLaunchKernelIndirect(ze_command_list_handle_t list, ze_kernel_handle_t kernel,
                                                           const ze_group_count_t *groups, ze_event_handle_t event,
                                                           uint32_t n, ze_event_handle_t *waits) {
    COUNT(zeCommandListAppendLaunchKernelIndirect);
    (void)n, (void)waits, (void)groups;
    return launch(list, kernel, NULL, event);
}
EXPORT ze_result_t zeCommandListAppendLaunchMultipleKernelsIndirect(ze_command_list_handle_t list, uint32_t kernels,
                                                                    ze_kernel_handle_t *all_of, const uint32_t *count,
                                                                    const ze_group_count_t *groups,
                                                                    ze_event_handle_t event, uint32_t n,
                                                                    ze_event_handle_t *waits) {
    COUNT(zeCommandListAppendLaunchMultipleKernelsIndirect);
    (void)n, (void)waits, (void)groups, (void)count;
    ze_result_t result = kernels ? launch(list, all_of[0], NULL, event) : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return result;
}

/* Commands that do nothing for some time. */
#define APPENDS(function, what, ticks, event, ...)                                       \
    EXPORT ze_result_t function(ze_command_list_handle_t list, __VA_ARGS__) {            \
        COUNT(function);                                                                 \
        struct job job = {.kind = what, .duration = ticks, .signals = of((void *)event)}; \
        return append(list, job);                                                        \
    }
#define WAITS uint32_t n, ze_event_handle_t *waits

APPENDS(zeCommandListAppendMemoryCopy, "copy", 500 + size / 16, e, void *to, const void *from, size_t size,
        ze_event_handle_t e, WAITS)
APPENDS(zeCommandListAppendMemoryFill, "fill", 300 + size / 16, e, void *to, const void *pattern, size_t each,
        size_t size, ze_event_handle_t e, WAITS)
APPENDS(zeCommandListAppendMemoryCopyRegion, "copy", 700, e, void *to, const ze_copy_region_t *r, uint32_t p, uint32_t s,
        const void *from, const ze_copy_region_t *fr, uint32_t fp, uint32_t fs, ze_event_handle_t e, WAITS)
APPENDS(zeCommandListAppendImageCopyToMemory, "read", 800, e, void *to, ze_image_handle_t i, const ze_image_region_t *r,
        ze_event_handle_t e, WAITS)
APPENDS(zeCommandListAppendImageCopyFromMemory, "write", 900, e, ze_image_handle_t i, const void *from,
        const ze_image_region_t *r, ze_event_handle_t e, WAITS)
APPENDS(zeCommandListAppendImageCopy, "copy", 950, e, ze_image_handle_t i, ze_image_handle_t f, ze_event_handle_t e, WAITS)
APPENDS(zeCommandListAppendWriteGlobalTimestamp, "marker", 50, e, uint64_t *to, ze_event_handle_t e, WAITS)

EXPORT ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t event, uint32_t n,
                                              ze_event_handle_t *waits) {
    COUNT(zeCommandListAppendBarrier);
    (void)waits;
    if (event && of((void *)list)->copies_times)
        of((void *)event)->ends_copies = 1;
    return append(list, (struct job){.kind = "barrier", .duration = 100, .signals = of((void *)event), .is_barrier = !n});
}
EXPORT ze_result_t zeCommandListAppendQueryKernelTimestamps(ze_command_list_handle_t list, uint32_t n,
                                                            ze_event_handle_t *events, void *to, const size_t *at,
                                                            ze_event_handle_t event, uint32_t w,
                                                            ze_event_handle_t *waits) {
    COUNT(zeCommandListAppendQueryKernelTimestamps);
    (void)at, (void)w, (void)waits;
    if (refuses("copies"))
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (of((void *)list)->ordinal == 1) {
        is_bad("times are copied in queues that only copy memory");
        return ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
    }
    struct query *query = malloc(sizeof *query + n * sizeof *query->of);
    query->events = n;
    query->to = to;
    for (uint32_t i = 0; i < n; i++)
        query->of[i] = of((void *)events[i]);
    if (!of((void *)list)->immediate)
        of((void *)list)->copies_times = 1;
    return append(list, (struct job){.kind = "marker", .duration = 60, .signals = of((void *)event), .query = query});
}

EXPORT ze_result_t zeCommandListAppendSignalEvent(ze_command_list_handle_t list, ze_event_handle_t event) {
    COUNT(zeCommandListAppendSignalEvent);
    return append(list, (struct job){.signals = of((void *)event)});
}
EXPORT ze_result_t zeCommandListAppendEventReset(ze_command_list_handle_t list, ze_event_handle_t event) {
    COUNT(zeCommandListAppendEventReset);
    return append(list, (struct job){.resets = of((void *)event)});
}

/* ---- Fences and events */

EXPORT ze_result_t zeFenceCreate(ze_command_queue_handle_t q, const ze_fence_desc_t *desc, ze_fence_handle_t *fence) {
    COUNT(zeFenceCreate);
    (void)q, (void)desc;
    return make(fence, NULL);
}
EXPORT ze_result_t zeFenceDestroy(ze_fence_handle_t fence) {
    COUNT(zeFenceDestroy);
    return end(fence);
}
EXPORT ze_result_t zeFenceHostSynchronize(ze_fence_handle_t fence, uint64_t timeout) {
    COUNT(zeFenceHostSynchronize);
    return wait_for(of((void *)fence), timeout);
}
EXPORT ze_result_t zeFenceReset(ze_fence_handle_t fence) {
    COUNT(zeFenceReset);
    of((void *)fence)->is_set = 0;
    return ZE_RESULT_SUCCESS;
}
/* Shared ones have no times, as with some drivers. */
EXPORT ze_result_t zeEventPoolCreate(ze_context_handle_t c, const ze_event_pool_desc_t *desc, uint32_t n,
                                     ze_device_handle_t *devices, ze_event_pool_handle_t *pool) {
    COUNT(zeEventPoolCreate);
    (void)c, (void)n, (void)devices;
    int shared = desc->flags & ZE_EVENT_POOL_FLAG_IPC, timed = desc->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
    if (shared && timed)
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    ze_result_t result = make(pool, NULL);
    /* The host may only ask about events that it can see. */
    of((void *)*pool)->has_times = timed && desc->flags & ZE_EVENT_POOL_FLAG_HOST_VISIBLE;
    of((void *)*pool)->flags = (int)desc->flags;
    const ze_base_desc_t *next = desc->pNext;
    of((void *)*pool)->counts = next && next->stype == 0x20014; /* a counter-based pool */
    return result;
}
EXPORT ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t pool) {
    COUNT(zeEventPoolDestroy);
    return end(pool);
}
EXPORT ze_result_t zeEventPoolGetFlags(ze_event_pool_handle_t pool, ze_event_pool_flags_t *flags) {
    COUNT(zeEventPoolGetFlags);
    *flags = (ze_event_pool_flags_t)of((void *)pool)->flags;
    return ZE_RESULT_SUCCESS;
}
EXPORT ze_result_t zeEventCreate(ze_event_pool_handle_t pool, const ze_event_desc_t *desc, ze_event_handle_t *event) {
    COUNT(zeEventCreate);
    (void)desc;
    ze_result_t result = make(event, NULL);
    of((void *)*event)->has_times = of((void *)pool)->has_times;
    of((void *)*event)->counts = of((void *)pool)->counts;
    return result;
}
struct counter_based_desc { int stype; const void *next; uint32_t flags, signal, wait; };
EXPORT ze_result_t zeEventCounterBasedCreate(ze_context_handle_t c, ze_device_handle_t d,
                                             const struct counter_based_desc *desc, ze_event_handle_t *event) {
    COUNT(zeEventCounterBasedCreate);
    (void)c, (void)d;
    ze_result_t result = make(event, NULL);
    of((void *)*event)->has_times = (desc->flags & 16) != 0 && (desc->flags & 4) != 0;
    of((void *)*event)->counts = 1;
    return result;
}
EXPORT ze_result_t zeEventDestroy(ze_event_handle_t event) {
    COUNT(zeEventDestroy);
    is_free(of((void *)event), NULL, "an event is destroyed while its times are copied");
    wait_for_users(of((void *)event));
    return end(event);
}
EXPORT ze_result_t zeEventHostSynchronize(ze_event_handle_t event, uint64_t timeout) {
    COUNT(zeEventHostSynchronize);
    return wait_for(of((void *)event), timeout);
}
EXPORT ze_result_t zeEventHostReset(ze_event_handle_t event) {
    COUNT(zeEventHostReset);
    is_free(of((void *)event), NULL, "an event is reset while its times are copied");
    pthread_mutex_lock(&mutex);
    of((void *)event)->is_set = 0;
    pthread_mutex_unlock(&mutex);
    return ZE_RESULT_SUCCESS;
}
/* Ready at the third question, however long that takes: so programs ask equally often each time. One that ends a list
 * which copies times is asked by who traces, and answers as drivers do. */
EXPORT ze_result_t zeEventQueryStatus(ze_event_handle_t event) {
    COUNT(zeEventQueryStatus);
    struct object *object = of((void *)event);
    if (object->ends_copies)
        return wait_for(object, 0);
    return object->polls++ < 2 ? ZE_RESULT_NOT_READY : wait_for(object, UINT64_MAX);
}
EXPORT ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t event, ze_kernel_timestamp_result_t *result) {
    COUNT(zeEventQueryKernelTimestamp);
    struct object *object = of((void *)event);
    if (!object->has_times)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&mutex);
    int is_set = object->is_set;
    result->global.kernelStart = valid(object->times[0], bits);
    result->global.kernelEnd = valid(object->times[1], bits);
    pthread_mutex_unlock(&mutex);
    result->context = result->global;
    return is_set ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

void *fake_newer(const char *name) {
    if (strcmp(name, "zeEventCounterBasedCreate") == 0)
        return (void *)zeEventCounterBasedCreate;
    if (strcmp(name, "zeEventPoolGetFlags") == 0)
        return (void *)zeEventPoolGetFlags;
    if (strcmp(name, "zeCommandListHostSynchronize") == 0)
        return (void *)zeCommandListHostSynchronize;
    if (strcmp(name, "zeCommandListImmediateAppendCommandListsExp") == 0)
        return (void *)zeCommandListImmediateAppendCommandListsExp;
    if (strcmp(name, "zeCommandListCreateCloneExp") == 0)
        return (void *)zeCommandListCreateCloneExp;
    return NULL;
}
