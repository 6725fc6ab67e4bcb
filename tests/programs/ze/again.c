/* Lists that are executed again before the program has waited for the last time, in the ways in which programs do that.
 * again PART [TIMES]. As with device.c, kernels of the name "untimed" are those of which no times can be known; those whose name
 * begins with "grows" last longer with each execution. */
#include "device.h"

enum { TIMES = 8, COPY_ONLY = 1 };

static int times = 6 * TIMES;

static char host[4096];
static ze_result_t (*append_lists)(ze_command_list_handle_t, uint32_t, ze_command_list_handle_t *, ze_event_handle_t,
                                   uint32_t, ze_event_handle_t *);

static ze_command_list_handle_t recorded(uint32_t flags) {
    ze_command_list_handle_t list = regular(flags);
    launch(list, "grows", 1, NULL);
    OK(zeCommandListAppendMemoryCopy(list, host, host + 2048, 160, NULL, 0, NULL));
    launch(list, "grows_too", 2, NULL);
    OK(zeCommandListClose(list));
    return list;
}

static ze_command_queue_handle_t another_queue(uint32_t group) {
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = group};
    ze_command_queue_handle_t made;
    OK(zeCommandQueueCreate(context, device, &desc, &made));
    return made;
}

static void execute_in(ze_command_queue_handle_t where, ze_command_list_handle_t list) {
    OK(zeCommandQueueExecuteCommandLists(where, 1, &list, NULL));
}

/* In a row, and then with waits; the fence means what it means. */
static void row(void) {
    ze_command_list_handle_t list = recorded(0), other = regular(0);
    ze_fence_desc_t desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, NULL, 0};
    ze_fence_handle_t fence;
    OK(zeFenceCreate(queue, &desc, &fence));
    launch(other, "between", 3, NULL);
    OK(zeCommandListClose(other));
    hold(1);
    for (int i = 0; i < TIMES; i++) {
        ze_command_list_handle_t both[2] = {other, list};
        if (i == 3)
            OK(zeCommandQueueExecuteCommandLists(queue, 2, both, fence));
        else
            execute(list, NULL);
    }
    printf("fence %#x\n", zeFenceHostSynchronize(fence, 0));
    hold(0);
    OK(zeFenceHostSynchronize(fence, UINT64_MAX));
    wait_for_queue();
    for (int i = 0; i < 2; i++) {
        execute(list, NULL);
        wait_for_queue();
    }
    /* Behind what was waited for it is again as at first. */
    hold(1);
    for (int i = 0; i < 3; i++)
        execute(list, NULL);
    hold(0);
    wait_for_queue();
    OK(zeCommandListDestroy(list));
}

/* The device is as fast as it is, and nobody holds it. */
static void free_row(void) {
    ze_command_list_handle_t list = recorded(0);
    for (int i = 0; i < times; i++)
        execute(list, NULL);
    wait_for_queue();
}

/* The same with a wait behind each, to compare with. */
static void waited(void) {
    ze_command_list_handle_t list = recorded(0);
    for (int i = 0; i < times; i++) {
        execute(list, NULL);
        wait_for_queue();
    }
}

/* In immediate lists, which are queues. */
static void immediate_lists(void) {
    ze_command_list_handle_t at_once[2] = {immediate(IN_ORDER), immediate(0)};
    ze_command_list_handle_t lists[2] = {recorded(LIST_IN_ORDER), recorded(0)};
    ze_event_handle_t ended = event(0);
    for (int turn = 0; turn < 2; turn++) {
        hold(1);
        for (int i = 0; i < TIMES; i++)
            OK(append_lists(at_once[turn], 1, &lists[turn], i == TIMES - 1 ? ended : NULL, 0, NULL));
        printf("ended %#x\n", zeEventHostSynchronize(ended, 0));
        hold(0);
        OK(zeEventHostSynchronize(ended, UINT64_MAX));
        OK(zeEventHostReset(ended));
    }
    /* Who has waited for the last one may end all of it. */
    for (int turn = 0; turn < 2; turn++) {
        OK(zeCommandListDestroy(lists[turn]));
        OK(zeCommandListDestroy(at_once[turn]));
    }
}

/* Each list in a queue of its own, and one that goes from queue to queue, of which nobody knows what its events hold. */
static void queues(void) {
    ze_command_queue_handle_t other = another_queue(0);
    ze_command_list_handle_t here = recorded(0), there = recorded(0), both = regular(0), again = regular(0);
    launch(both, "untimed", 1, NULL);
    OK(zeCommandListClose(both));
    launch(again, "grows_again", 1, NULL);
    OK(zeCommandListClose(again));
    hold(1);
    for (int i = 0; i < TIMES; i++) {
        execute(here, NULL);
        execute_in(other, there);
    }
    for (int i = 0; i < 4; i++)
        execute_in(i < 1 ? queue : other, both);
    hold(0);
    wait_for_queue();
    OK(zeCommandQueueSynchronize(other, UINT64_MAX));
    /* After the queue was waited for it may go to the other one. */
    for (int turn = 0; turn < 2; turn++) {
        hold(1);
        for (int i = 0; i < 3; i++)
            execute_in(turn ? other : queue, again);
        hold(0);
        OK(zeCommandQueueSynchronize(turn ? other : queue, UINT64_MAX));
    }
    printf("UNTIMED 4\n");
}

/* Commands that signal events of the program's: reset in the list, before and behind, and never. */
static void events(void) {
    ze_command_list_handle_t lists[3];
    for (int i = 0; i < 3; i++) {
        ze_event_handle_t own = event(0);
        lists[i] = regular(0);
        if (i == 0)
            OK(zeCommandListAppendEventReset(lists[i], own));
        launch(lists[i], "grows", 1, NULL);
        launch(lists[i], "untimed", 1, own);
        if (i == 1)
            OK(zeCommandListAppendEventReset(lists[i], own));
        OK(zeCommandListClose(lists[i]));
    }
    hold(1);
    for (int i = 0; i < 4; i++)
        for (int list = 0; list < 3; list++)
            execute(lists[list], NULL);
    hold(0);
    wait_for_queue();
    /* The host waits for one command and resets its event, while others of the list go on. */
    ze_command_list_handle_t list = regular(0);
    ze_event_handle_t own = event(0);
    launch(list, "own", 1, own);
    for (int i = 0; i < 3; i++)
        launch(list, "grows_long", 5000, NULL);
    OK(zeCommandListClose(list));
    for (int i = 0; i < 4; i++) {
        execute(list, NULL);
        OK(zeEventHostSynchronize(own, UINT64_MAX));
        OK(zeEventHostReset(own));
    }
    wait_for_queue();
    printf("UNTIMED 12\n");
}

/* What lists need ends as soon as it may: lists are reset, recorded anew and destroyed, queues and contexts end. */
static void endings(void) {
    ze_context_handle_t first = context;
    for (int turn = 0; turn < 3; turn++) {
        ze_context_desc_t desc = {ZE_STRUCTURE_TYPE_CONTEXT_DESC, NULL, 0};
        OK(zeContextCreate(driver, &desc, &context));
        ze_command_queue_handle_t own = another_queue(0);
        ze_fence_desc_t fence_desc = {ZE_STRUCTURE_TYPE_FENCE_DESC, NULL, 0};
        ze_fence_handle_t fence;
        OK(zeFenceCreate(own, &fence_desc, &fence));
        ze_command_list_handle_t list = recorded(0), left = recorded(0);
        for (int round = 0; round < 3; round++) {
            hold(1);
            for (int i = 0; i < 3; i++) {
                execute_in(own, left);
                OK(zeCommandQueueExecuteCommandLists(own, 1, &list, i == 2 ? fence : NULL));
            }
            hold(0);
            OK(zeFenceHostSynchronize(fence, UINT64_MAX));
            OK(zeFenceReset(fence));
            OK(zeCommandListReset(list));
            for (int i = 0; i <= round; i++)
                launch(list, "grows_anew", 2, NULL);
            OK(zeCommandListClose(list));
        }
        OK(zeCommandListDestroy(list));
        if (turn)
            OK(zeCommandListDestroy(left));
        OK(zeFenceDestroy(fence));
        OK(zeCommandQueueDestroy(own));
        OK(zeContextDestroy(context));
    }
    context = first;
}

/* More than may be copied at a time; and then it is as before. */
static void deep(void) {
    ze_command_list_handle_t list = regular(0);
    launch(list, "grows", 1, NULL);
    OK(zeCommandListClose(list));
    for (int turn = 0; turn < 2; turn++) {
        hold(1);
        for (int i = 0; i < (turn ? 3 : 100); i++)
            execute(list, NULL);
        hold(0);
        wait_for_queue();
    }
}

/* A queue that only copies memory, and a list twice in one call. */
static void elsewhere(void) {
    ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .commandQueueGroupOrdinal = COPY_ONLY};
    ze_command_queue_handle_t copying = another_queue(COPY_ONLY);
    ze_command_list_handle_t list, twice = regular(0), both[2] = {twice, twice};
    OK(zeCommandListCreate(context, device, &desc, &list));
    launch(list, "untimed", 1, NULL);
    OK(zeCommandListClose(list));
    launch(twice, "untimed", 1, NULL);
    OK(zeCommandListClose(twice));
    hold(1);
    for (int i = 0; i < 3; i++)
        execute_in(copying, list);
    OK(zeCommandQueueExecuteCommandLists(queue, 2, both, NULL));
    hold(0);
    wait_for_queue();
    printf("UNTIMED 5\n");
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static ze_command_list_handle_t shared_list;
static int is_locked;

static void *executes(void *nothing) {
    for (int i = 0; i < 12; i++) {
        if (is_locked)
            pthread_mutex_lock(&one_at_a_time);
        execute(shared_list, NULL);
        if (is_locked)
            pthread_mutex_unlock(&one_at_a_time);
    }
    return nothing;
}

/* Threads that execute one list: one after the other, and as none should. */
static void share(int locked) {
    pthread_t threads[4];
    shared_list = recorded(0);
    is_locked = locked;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, executes, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    wait_for_queue();
}

static void shared(void) {
    share(1);
}

static void raced(void) {
    share(0);
}

/* Each thread has its own queue, lists and events. */
static void *works(void *number) {
    char name[16];
    snprintf(name, sizeof name, "grows%lu", (unsigned long)(uintptr_t)number);
    ze_command_queue_handle_t own = another_queue(0);
    ze_command_list_handle_t at_once = immediate(IN_ORDER), list = regular(0), appended = regular(LIST_IN_ORDER);
    for (int round = 0; round < 3; round++) {
        launch(list, name, 1, NULL);
        launch(list, name, 2, NULL);
        launch(appended, name, 3, NULL);
        OK(zeCommandListClose(list));
        OK(zeCommandListClose(appended));
        for (int i = 0; i < TIMES; i++) {
            execute_in(own, list);
            OK(append_lists(at_once, 1, &appended, NULL, 0, NULL));
        }
        OK(zeCommandQueueSynchronize(own, UINT64_MAX));
        ze_result_t (*wait)(ze_command_list_handle_t, uint64_t) = newer("zeCommandListHostSynchronize");
        OK(wait(at_once, UINT64_MAX));
        OK(zeCommandListReset(list));
        OK(zeCommandListReset(appended));
    }
    OK(zeCommandListDestroy(list));
    OK(zeCommandListDestroy(appended));
    OK(zeCommandListDestroy(at_once));
    OK(zeCommandQueueDestroy(own));
    return NULL;
}

static void threads(void) {
    pthread_t all[8];
    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&all[i], NULL, works, (void *)(i + 1));
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], NULL);
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } parts[] = {
        {"row", row}, {"free", free_row}, {"waited", waited}, {"immediate", immediate_lists}, {"queues", queues}, {"events", events},
        {"endings", endings}, {"deep", deep}, {"elsewhere", elsewhere}, {"shared", shared}, {"raced", raced},
        {"threads", threads},
    };
    if (!is_ready())
        return 8;
    if (argc > 2)
        times = atoi(argv[2]);
    append_lists = newer("zeCommandListImmediateAppendCommandListsExp");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
            parts[i].run();
    return finish();
}
