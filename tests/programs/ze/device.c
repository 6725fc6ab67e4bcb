/* Commands of Level Zero on the fake driver's device, in the ways in which programs enqueue them. device PART. At the end
 * the driver says what ran (RAN), and kernels of the name "untimed" are those of which no times can be known. */
#include "device.h"

static char host[4096];

/* Every kind of command, with an event of each kind that a program may have, and without one. */
static void immediates(void) {
    ze_command_list_handle_t in_order = immediate(IN_ORDER), free_order = immediate(0);
    ze_event_handle_t timed = event(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP), plain = event(0);
    ze_kernel_handle_t indirect = kernel("indirect");
    ze_copy_region_t region = {0, 0, 0, 64, 4, 0};
    uint32_t one = 1;
    for (int i = 0; i < 2; i++) {
        ze_command_list_handle_t list = i ? free_order : in_order;
        launch(list, "alone", 2, NULL);
        launch(list, "with_timed", 3, timed);
        launch(list, "with_plain", 4, plain);
        ze_group_count_t groups = {2, 3, 4};
        OK(zeCommandListAppendLaunchCooperativeKernel(list, kernel("together"), &groups, NULL, 0, NULL));
        OK(zeCommandListAppendLaunchKernelIndirect(list, indirect, &groups, NULL, 0, NULL));
        OK(zeCommandListAppendLaunchMultipleKernelsIndirect(list, 1, &indirect, &one, &groups, NULL, 0, NULL));
        OK(zeCommandListAppendMemoryCopy(list, host, host + 2048, 1600, NULL, 0, NULL));
        OK(zeCommandListAppendMemoryFill(list, host, &one, 4, 320, NULL, 0, NULL));
        OK(zeCommandListAppendMemoryCopyRegion(list, host, &region, 0, 0, host, &region, 0, 0, NULL, 0, NULL));
        OK(zeCommandListAppendImageCopyToMemory(list, host, NULL, NULL, NULL, 0, NULL));
        OK(zeCommandListAppendImageCopyFromMemory(list, NULL, host, NULL, NULL, 0, NULL));
        OK(zeCommandListAppendImageCopy(list, NULL, NULL, NULL, 0, NULL));
        OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
        OK(zeCommandListAppendWriteGlobalTimestamp(list, (uint64_t *)host, NULL, 0, NULL));
        OK(zeCommandListAppendQueryKernelTimestamps(list, 1, &timed, host, NULL, NULL, 0, NULL));
        OK(zeEventHostSynchronize(timed, UINT64_MAX));
        OK(zeEventHostSynchronize(plain, UINT64_MAX));
        OK(zeEventHostReset(timed));
        OK(zeEventHostReset(plain));
    }
    /* Events that the host can't see, with times of their own and without. */
    launch(in_order, "hidden", 2, event_with(0));
    launch(in_order, "hidden", 3, event_with(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP));
    ze_kernel_timestamp_result_t times;
    launch(in_order, "asked", 5, timed);
    OK(zeEventHostSynchronize(timed, UINT64_MAX));
    OK(zeEventQueryKernelTimestamp(timed, &times));
    printf("asked took %lu\n", times.global.kernelEnd - times.global.kernelStart);
    ze_event_pool_flags_t flags = 0;
    ze_result_t (*get_flags)(ze_event_pool_handle_t, ze_event_pool_flags_t *) = newer("zeEventPoolGetFlags");
    OK(get_flags(pools[1], &flags));
    printf("flags %#x", flags);
    OK(get_flags(pools[2], &flags));
    printf(" and %#x\n", flags);
    OK(zeCommandListDestroy(in_order));
    OK(zeCommandListDestroy(free_order));
}

/* A list that is executed several times: waited for, and at once. */
static void regulars(void) {
    ze_command_list_handle_t list = regular(0);
    ze_event_handle_t timed = event(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
    ze_fence_desc_t desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, NULL, 0};
    ze_fence_handle_t fence;
    OK(zeFenceCreate(queue, &desc, &fence));
    launch(list, "first", 1, NULL);
    launch(list, "second", 6, timed);
    OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    OK(zeCommandListAppendMemoryCopy(list, host, host + 2048, 160, NULL, 0, NULL));
    OK(zeCommandListClose(list));
    for (int i = 0; i < 3; i++) {
        execute(list, NULL);
        wait_for_queue();
        OK(zeEventHostReset(timed));
    }
    /* By a fence, and without the program's event being reset by the host before it is executed again. */
    execute(list, fence);
    OK(zeFenceHostSynchronize(fence, UINT64_MAX));
    OK(zeFenceReset(fence));
    OK(zeEventHostReset(timed));
    execute(list, fence);
    OK(zeFenceHostSynchronize(fence, UINT64_MAX));
    /* Reset and recorded anew, while nothing was asked. */
    OK(zeCommandListReset(list));
    OK(zeEventHostReset(timed));
    launch(list, "again", 7, NULL);
    OK(zeCommandListClose(list));
    execute(list, NULL);
    wait_for_queue();
    OK(zeCommandListDestroy(list));
    OK(zeFenceDestroy(fence));
}

/* A list that is executed again before the last execution has ended: in one call nobody knows whose times its events
 * have. */
static void pipelined(void) {
    ze_command_list_handle_t list = regular(0);
    launch(list, "in_a_row", 1, NULL);
    OK(zeCommandListClose(list));
    hold(1);
    execute(list, NULL);
    execute(list, NULL);
    execute(list, NULL);
    hold(0);
    wait_for_queue();
    ze_command_list_handle_t other = regular(0);
    launch(other, "untimed", 2, NULL);
    OK(zeCommandListClose(other));
    ze_command_list_handle_t twice[2] = {other, other};
    OK(zeCommandQueueExecuteCommandLists(queue, 2, twice, NULL));
    wait_for_queue();
    /* From here on it is known again. */
    ze_command_list_handle_t timed = regular(0);
    launch(timed, "later", 3, NULL);
    OK(zeCommandListClose(timed));
    hold(1);
    execute(timed, NULL);
    hold(0);
    wait_for_queue();
    execute(timed, NULL);
    wait_for_queue();
    printf("UNTIMED 2\n");
}

/* Twice in one call, and then with waits: each execution has times again. */
static void recovers(void) {
    ze_command_list_handle_t list = regular(0);
    launch(list, "many", 1, NULL);
    OK(zeCommandListClose(list));
    ze_command_list_handle_t twice[2] = {list, list};
    hold(1);
    OK(zeCommandQueueExecuteCommandLists(queue, 2, twice, NULL));
    hold(0);
    wait_for_queue();
    for (int i = 0; i < 4; i++) {
        execute(list, NULL);
        wait_for_queue();
    }
    printf("UNTIMED 2\n");
}

/* Events that can't have times. */
static void shared(void) {
    ze_command_list_handle_t in_order = immediate(IN_ORDER), free_order = immediate(0), list = regular(LIST_IN_ORDER);
    ze_event_handle_t theirs = event(ZE_EVENT_POOL_FLAG_IPC);
    launch(in_order, "in_order", 1, theirs);
    OK(zeEventHostSynchronize(theirs, UINT64_MAX));
    OK(zeEventHostReset(theirs));
    launch(free_order, "untimed", 2, theirs);
    OK(zeEventHostSynchronize(theirs, UINT64_MAX));
    OK(zeEventHostReset(theirs));
    launch(list, "recorded", 3, theirs);
    OK(zeCommandListClose(list));
    execute(list, NULL);
    OK(zeEventHostSynchronize(theirs, UINT64_MAX));
    wait_for_queue();
    OK(zeEventHostReset(theirs));
    execute(list, NULL);
    OK(zeEventHostSynchronize(theirs, UINT64_MAX));
    wait_for_queue();
    printf("all were signalled\nUNTIMED 1\n");
}

/* Events that need no reset: they mean the last command that they were given to. */
static void counters(void) {
    struct { int stype; const void *next; uint32_t flags, signal, wait; } desc = {0x2003a, NULL, 1 | 4, 0, 0};
    ze_result_t (*create)(ze_context_handle_t, ze_device_handle_t, const void *, ze_event_handle_t *) =
        newer("zeEventCounterBasedCreate");
    ze_event_handle_t plain, timed;
    OK(create(context, device, &desc, &plain));
    desc.flags |= 16;
    OK(create(context, device, &desc, &timed));
    ze_command_list_handle_t list = immediate(IN_ORDER);
    for (uint32_t i = 0; i < 3; i++) {
        launch(list, "plain", 1 + i, plain);
        OK(zeEventHostSynchronize(plain, UINT64_MAX));
        launch(list, "timed", 5 + i, timed);
        OK(zeEventHostSynchronize(timed, UINT64_MAX));
    }
    /* It is given to another command before the first has ended, which so has no times any more. */
    hold(1);
    launch(list, "untimed", 9, timed);
    launch(list, "last", 10, timed);
    hold(0);
    OK(zeEventHostSynchronize(timed, UINT64_MAX));
    /* The same, of a pool whose description goes on. */
    struct { int stype; const void *next; uint32_t flags; } counted = {0x20014, NULL, 1};
    ze_event_pool_desc_t pool_desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, &counted,
                                      ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP, 1};
    ze_event_desc_t each = {ZE_STRUCTURE_TYPE_EVENT_DESC, NULL, 0, 0, 0};
    ze_event_pool_handle_t pool;
    OK(zeEventPoolCreate(context, &pool_desc, 1, &device, &pool));
    OK(zeEventCreate(pool, &each, &timed));
    hold(1);
    launch(list, "untimed", 11, timed);
    launch(list, "of_pool", 12, timed);
    hold(0);
    OK(zeEventHostSynchronize(timed, UINT64_MAX));
    printf("UNTIMED 2\n");
}

static void clones(void) {
    ze_result_t (*clone)(ze_command_list_handle_t, ze_command_list_handle_t *) = newer("zeCommandListCreateCloneExp");
    ze_command_list_handle_t list = regular(0), copy = NULL;
    launch(list, "untimed", 1, NULL);
    OK(zeCommandListClose(list));
    OK(clone(list, &copy));
    execute(list, NULL);
    execute(copy, NULL);
    wait_for_queue();
    printf("UNTIMED 2\n");
}

/* What a command needs ends before anybody has asked for its times: its event, its list, its context. */
static void endings(void) {
    ze_command_list_handle_t list = immediate(0), recorded = regular(0);
    ze_event_handle_t timed = event(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
    launch(list, "kept", 1, timed);
    while (zeEventQueryStatus(timed) == ZE_RESULT_NOT_READY) {
    }
    OK(zeEventDestroy(timed));
    launch(recorded, "reset", 2, NULL);
    OK(zeCommandListClose(recorded));
    execute(recorded, NULL);
    wait_for_queue();
    OK(zeCommandListReset(recorded));
    OK(zeCommandListDestroy(recorded));
    launch(list, "at_the_end", 3, NULL);
}

/* The counter begins anew while a kernel runs. */
static void across(void) {
    ze_command_list_handle_t list = immediate(IN_ORDER);
    for (uint32_t i = 0; i < 3; i++)
        launch(list, "before", 1 + i, NULL);
    launch(list, "across", 1, NULL);
    for (uint32_t i = 0; i < 3; i++)
        launch(list, "after", 1 + i, NULL);
}

/* The counter begins anew while nothing runs. */
static void sleeps(void) {
    ze_command_list_handle_t list = immediate(IN_ORDER);
    for (uint32_t i = 0; i < 3; i++) {
        ze_event_handle_t timed = event(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
        launch(list, "awake", 1 + i, timed);
        OK(zeEventHostSynchronize(timed, UINT64_MAX));
        nanosleep(&(struct timespec){2, 200000000}, NULL);
    }
}

/* The program only asks, and never waits: what its questions answer is all that says that commands have ended. */
static void polls(void) {
    ze_command_list_handle_t list = immediate(0);
    for (uint32_t i = 0; i < 3; i++) {
        ze_event_handle_t timed = event(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
        launch(list, "polled", 1 + i, timed);
        while (zeEventQueryStatus(timed) == ZE_RESULT_NOT_READY) {
        }
    }
    /* It does not end as programs do. */
    say_ran();
    fflush(stdout);
    _exit(7);
}

/* What is recorded of lists and events that are used within a capture window and outside. */
static void windows(void) {
    ze_command_list_handle_t at_once = immediate(IN_ORDER), before = regular(0), within = regular(0);
    ze_event_handle_t timed = event(ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
    launch(before, "untimed", 1, NULL);
    OK(zeCommandListClose(before));
    launch(at_once, "outside", 2, timed);
    OK(zeEventHostSynchronize(timed, UINT64_MAX));
    OK(zeEventHostReset(timed));
    hetrace_capture_start();
    launch(at_once, "inside", 3, timed);
    OK(zeEventHostSynchronize(timed, UINT64_MAX));
    OK(zeEventHostReset(timed));
    launch(within, "again", 4, NULL);
    OK(zeCommandListClose(within));
    execute(before, NULL);
    execute(within, NULL);
    wait_for_queue();
    hetrace_capture_stop();
    /* Its events are signalled, and nobody asks. */
    execute(within, NULL);
    wait_for_queue();
    launch(at_once, "outside", 5, timed);
    OK(zeEventHostSynchronize(timed, UINT64_MAX));
    hetrace_capture_start();
    execute(within, NULL);
    wait_for_queue();
    hetrace_capture_stop();
    printf("UNTIMED 1\n");
}

/* Several threads at once, each with its own lists, events and context, which come and go. */
static void *storms(void *number) {
    uint32_t own = (uint32_t)(uintptr_t)number;
    ze_context_desc_t context_desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, NULL, 0};
    ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_event_pool_desc_t pool_desc = {ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, NULL, ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1};
    ze_event_desc_t event_desc = {ZE_STRUCTURE_TYPE_EVENT_DESC, NULL, 0, 0, 0};
    char name[16];
    snprintf(name, sizeof name, "storm%u", own);
    for (int round = 0; round < 6; round++) {
        ze_context_handle_t here;
        ze_command_queue_handle_t own_queue;
        ze_command_list_handle_t at_once, list;
        ze_event_pool_handle_t pool;
        ze_event_handle_t signals;
        OK(zeContextCreate(driver, &context_desc, &here));
        OK(zeCommandQueueCreate(here, device, &queue_desc, &own_queue));
        OK(zeCommandListCreateImmediate(here, device, &queue_desc, &at_once));
        OK(zeCommandListCreate(here, device, &list_desc, &list));
        OK(zeEventPoolCreate(here, &pool_desc, 1, &device, &pool));
        OK(zeEventCreate(pool, &event_desc, &signals));
        for (int turn = 0; turn < 4; turn++) {
            launch(list, name, own, NULL);
            launch(list, name, own + 20, signals);
            OK(zeCommandListClose(list));
            for (int i = 0; i < 3; i++) {
                OK(zeCommandQueueExecuteCommandLists(own_queue, 1, &list, NULL));
                OK(zeCommandQueueSynchronize(own_queue, UINT64_MAX));
                OK(zeEventHostReset(signals));
            }
            OK(zeCommandListReset(list));
            launch(at_once, name, own + 40, signals);
            launch(at_once, name, own + 60, NULL);
            OK(zeEventHostSynchronize(signals, UINT64_MAX));
            OK(zeEventHostReset(signals));
        }
        OK(zeCommandListDestroy(list));
        OK(zeCommandListDestroy(at_once));
        OK(zeEventDestroy(signals));
        OK(zeEventPoolDestroy(pool));
        OK(zeCommandQueueDestroy(own_queue));
        OK(zeContextDestroy(here));
    }
    return NULL;
}

static void storm(void) {
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, storms, (void *)(i + 1));
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

/* Nobody asks before the counter has begun anew: which time it was is not known. */
static void late(void) {
    ze_command_list_handle_t list = immediate(IN_ORDER);
    launch(list, "untimed", 1, NULL);
    nanosleep(&(struct timespec){0, 400000000}, NULL);
    printf("UNTIMED 1\n");
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } parts[] = {
        {"immediate", immediates}, {"regular", regulars}, {"pipelined", pipelined}, {"recovers", recovers},
        {"shared", shared}, {"counters", counters}, {"clones", clones}, {"endings", endings}, {"across", across},
        {"late", late}, {"sleeps", sleeps}, {"polls", polls}, {"windows", windows},
        {"storm", storm},
    };
    if (!is_ready())
        return 8;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
            parts[i].run();
    return finish();
}
