/*
 * A runtime that is none: it starts the tool that OMP_TOOL_LIBRARIES names first, as the specification has it, and reports to
 * it what real runtimes here do not, or not yet. A fake: what it shows is how the tool takes it.
 *
 *   fake_runtime devices   all of devices, by events with two endpoints
 *   fake_runtime over      regions that have the CUDA driver do their work, one of them in a task that a thread executes while
 *                          it waits, and a task that calls the driver itself
 *   fake_runtime older     the same by a runtime that has only the events before these
 *   fake_runtime unheard   kinds that no specification has
 *   fake_runtime unpaired  begins without ends and ends without begins
 *   fake_runtime deep      more waits inside of each other than are kept, and tasks
 *   fake_runtime tasks     detached tasks, tasks that are put aside, other changes of their state
 *   fake_runtime dumb      it lets no tool set callbacks
 *   fake_runtime waits N   N begins and ends of a wait, or of a loop (works N), for measurements
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*any)(void);
struct started {
    int (*initialize)(any (*)(const char *), int, uint64_t *);
    void (*finalize)(uint64_t *);
    uint64_t data;
};
enum { BEGIN = 1, END = 2, BOTH = 3, NEVER = 1, ALWAYS = 5, EVENTS = 64 };
enum { TARGET = 8, OPERATION, SUBMIT, LOAD_DEVICE = 12, END_DEVICE, LOAD, UNLOAD, WAIT, WORK = 20, MAP = 22,
       ACQUIRE = 26, ACQUIRED, CANCEL = 30, DISPATCH = 32, TARGET_EMI, OPERATION_EMI, SUBMIT_EMI, MAP_EMI, ERROR,
       PARALLEL = 3, PARALLEL_END, SCHEDULE = 6 };

static any callbacks[EVENTS];
static const char *what;

static int set_callback(int event, any callback)
{
    int is_newer = event >= TARGET_EMI && event <= MAP_EMI;
    if (is_newer && !strcmp(what, "older"))
        return NEVER;
    callbacks[event] = callback;
    return ALWAYS;
}

static any look_up(const char *name)
{
    return strcmp(name, "ompt_set_callback") || !strcmp(what, "dumb") ? NULL : (any)set_callback;
}

static any traces(const char *name)
{
    return strcmp(name, "ompt_start_trace") ? NULL : (any)traces;
}

/* Calls a callback, which must be there. */
#define CALL(event, types, ...)                             \
    do {                                                    \
        if (!callbacks[event])                              \
            printf("no callback for %d\n", event);          \
        else                                                \
            ((void(*) types)callbacks[event])(__VA_ARGS__); \
    } while (0)

#define REGION (int, int, int, void *, void *, void *, void *)
#define OP (int, void *, void *, void *, int, void *, int, void *, int, size_t, void *)
#define OLD_OP (uint64_t, uint64_t, int, void *, int, void *, int, size_t, void *)
#define SYNC (int, int, void *, void *, void *)

static char memory[4096];
static uint64_t words[64];
static void *const code = (void *)traces;

static void devices(void)
{
    CALL(LOAD_DEVICE, (int, const char *, void *, any (*)(const char *), const char *), 3, "fake", memory, traces, "none");
    CALL(LOAD, (int, const char *, int64_t, void *, size_t, void *, void *, uint64_t), 3, "file.so", 16, memory, 100, memory,
         memory, 9);
    CALL(TARGET_EMI, REGION, 1, BEGIN, 3, &words[0], NULL, &words[1], code);
    CALL(OPERATION_EMI, OP, BEGIN, NULL, &words[1], &words[2], 17, memory, -1, NULL, 3, 64, code);
    CALL(OPERATION_EMI, OP, END, NULL, &words[1], &words[2], 17, memory, -1, &memory[1024], 3, 64, code);
    CALL(OPERATION_EMI, OP, BOTH, NULL, &words[1], &words[2], 18, memory, -1, &memory[1024], 3, 64, code);
    CALL(SUBMIT_EMI, (int, void *, void *, unsigned), BEGIN, &words[1], &words[2], 12);
    CALL(SUBMIT_EMI, (int, void *, void *, unsigned), END, &words[1], &words[2], 12);
    CALL(OPERATION_EMI, OP, BEGIN, NULL, &words[1], &words[2], 20, NULL, -1, &memory[1024], 3, 0, code);
    CALL(OPERATION_EMI, OP, END, NULL, &words[1], &words[2], 20, NULL, -1, &memory[1024], 3, 0, code);
    void *host[] = {memory, &memory[8]}, *device[] = {&memory[1024], &memory[1032]};
    size_t bytes[] = {8, 16};
    unsigned flags[] = {1, 2 | 32};
    CALL(MAP_EMI, (void *, unsigned, void **, void **, size_t *, unsigned *, void *), &words[1], 2, host, device, bytes, flags,
         code);
    CALL(TARGET_EMI, REGION, 1, END, 3, &words[0], NULL, &words[1], code);
    CALL(TARGET_EMI, REGION, 12, BOTH, 3, &words[0], NULL, &words[1], code);
    CALL(UNLOAD, (int, uint64_t), 3, 9);
    CALL(END_DEVICE, (int), 3);
    CALL(ERROR, (int, const char *, size_t, void *), 2, "out of luck and more", 11, code);
    CALL(CANCEL, (void *, int, void *), &words[0], 4 | 16, code);
}

/* The driver, as a runtime opens it. */
static void *driver(const char *name)
{
    static void *library;
    library = library ? library : dlopen("libcuda.so.1", RTLD_LAZY);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        printf("no %s\n", name);
        exit(3);
    }
    return function;
}

static void launch(void *kernel)
{
    int (*function)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        driver("cuLaunchKernel");
    function(kernel, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static void over(void)
{
    enum { SIZE = 1 << 17, SWITCH = 7, COMPLETE = 1 };
    void *context, *module, *kernel, *host = calloc(1, SIZE);
    uint64_t device = 0;
    ((int (*)(unsigned))driver("cuInit"))(0);
    ((int (*)(void **, int))driver("cuDevicePrimaryCtxRetain"))(&context, 0);
    ((int (*)(void *))driver("cuCtxSetCurrent"))(context);
    ((int (*)(void **, const void *))driver("cuModuleLoadData"))(&module, "image");
    ((int (*)(void **, void *, const char *))driver("cuModuleGetFunction"))(&kernel, module, "k20000");

    CALL(TARGET_EMI, REGION, 1, BEGIN, 0, &words[0], NULL, &words[1], code);
    CALL(OPERATION_EMI, OP, BEGIN, NULL, &words[1], &words[2], 1, host, 1, NULL, 0, SIZE, code);
    ((int (*)(uint64_t *, size_t))driver("cuMemAlloc_v2"))(&device, SIZE);
    CALL(OPERATION_EMI, OP, END, NULL, &words[1], &words[2], 1, host, 1, (void *)device, 0, SIZE, code);
    CALL(OPERATION_EMI, OP, BEGIN, NULL, &words[1], &words[2], 2, host, 1, (void *)device, 0, SIZE, code);
    ((int (*)(uint64_t, const void *, size_t, void *))driver("cuMemcpyHtoDAsync_v2"))(device, host, SIZE, NULL);
    CALL(OPERATION_EMI, OP, END, NULL, &words[1], &words[2], 2, host, 1, (void *)device, 0, SIZE, code);
    CALL(SUBMIT_EMI, (int, void *, void *, unsigned), BEGIN, &words[1], &words[2], 4);
    launch(kernel);
    CALL(SUBMIT_EMI, (int, void *, void *, unsigned), END, &words[1], &words[2], 4);
    /* The memory is kept for later. */
    CALL(OPERATION_EMI, OP, BOTH, NULL, &words[1], &words[2], 4, NULL, -1, (void *)device, 0, 0, code);
    CALL(TARGET_EMI, REGION, 1, END, 0, &words[0], NULL, &words[1], code);

    CALL(WAIT, SYNC, 9, BEGIN, &words[3], &words[4], NULL);
    CALL(SCHEDULE, (void *, int, void *), &words[4], SWITCH, &words[5]);
    CALL(TARGET_EMI, REGION, 9, BEGIN, 0, &words[5], NULL, &words[6], code);
    CALL(SUBMIT_EMI, (int, void *, void *, unsigned), BEGIN, &words[6], &words[7], 4);
    launch(kernel);
    CALL(SUBMIT_EMI, (int, void *, void *, unsigned), END, &words[6], &words[7], 4);
    CALL(TARGET_EMI, REGION, 9, END, 0, &words[5], NULL, &words[6], code);
    CALL(SCHEDULE, (void *, int, void *), &words[5], COMPLETE, &words[4]);
    CALL(SCHEDULE, (void *, int, void *), &words[4], SWITCH, &words[8]);
    launch(kernel);
    CALL(SCHEDULE, (void *, int, void *), &words[8], COMPLETE, &words[4]);
    CALL(WAIT, SYNC, 9, END, &words[3], &words[4], NULL);

    ((int (*)(void))driver("cuCtxSynchronize"))();
    ((int (*)(uint64_t))driver("cuMemFree_v2"))(device);
    free(host);
    errno = 77;
}

static void older(void)
{
    for (int event = TARGET_EMI; event <= MAP_EMI; event++)
        if (callbacks[event])
            printf("a callback for %d\n", event);
    CALL(TARGET, (int, int, int, void *, uint64_t, void *), 2, BEGIN, 3, &words[0], 5, code);
    CALL(OPERATION, OLD_OP, 5, 6, 1, memory, -1, &memory[1024], 3, 64, code);
    CALL(OPERATION, OLD_OP, 5, 7, 2, memory, -1, &memory[1024], 3, 64, code);
    CALL(SUBMIT, (uint64_t, uint64_t, unsigned), 5, 8, 12);
    CALL(TARGET, (int, int, int, void *, uint64_t, void *), 2, END, 3, &words[0], 5, code);
}

static void unheard(void)
{
    CALL(WAIT, SYNC, 77, BEGIN, &words[0], &words[1], code);
    CALL(WAIT, SYNC, 77, END, &words[0], &words[1], code);
    CALL(WORK, (int, int, void *, void *, uint64_t, void *), 78, BEGIN, &words[0], &words[1], 3, code);
    CALL(WORK, (int, int, void *, void *, uint64_t, void *), 78, END, &words[0], &words[1], 3, code);
    CALL(ACQUIRE, (int, unsigned, unsigned, uint64_t, void *), 79, 0, 0, 5, code);
    CALL(ACQUIRED, (int, uint64_t, void *), 79, 5, code);
    CALL(TARGET_EMI, REGION, 80, BEGIN, 3, &words[0], NULL, &words[1], code);
    CALL(OPERATION_EMI, OP, BOTH, NULL, &words[1], &words[2], 81, memory, -1, &memory[1024], 3, 64, code);
    CALL(TARGET_EMI, REGION, 80, END, 3, &words[0], NULL, &words[1], code);
}

static void unpaired(void)
{
    /* Ends of nothing. */
    CALL(WAIT, SYNC, 3, END, &words[0], &words[1], code);
    CALL(ACQUIRED, (int, uint64_t, void *), 5, 5, code);
    /* A taskwait without an end, in a barrier; and a test that fails. */
    CALL(WAIT, SYNC, 3, BEGIN, &words[0], &words[1], code);
    CALL(WAIT, SYNC, 5, BEGIN, &words[0], &words[1], code);
    CALL(WAIT, SYNC, 3, END, &words[0], &words[1], code);
    CALL(ACQUIRE, (int, unsigned, unsigned, uint64_t, void *), 2, 0, 0, 5, code);
    CALL(WAIT, SYNC, 6, BEGIN, &words[0], &words[1], code);
    CALL(WAIT, SYNC, 6, END, &words[0], &words[1], code);
    /* A single without an end, in a loop; and the end of sections that have not begun. */
    CALL(WORK, (int, int, void *, void *, uint64_t, void *), 10, BEGIN, &words[0], &words[1], 3, code);
    CALL(WORK, (int, int, void *, void *, uint64_t, void *), 3, BEGIN, &words[0], &words[1], 1, code);
    CALL(WORK, (int, int, void *, void *, uint64_t, void *), 2, END, &words[0], &words[1], 1, code);
    CALL(WORK, (int, int, void *, void *, uint64_t, void *), 10, END, &words[0], &words[1], 3, code);
}

static void deep(void)
{
    enum { LEVELS = 1500 };
    for (int i = 0; i < LEVELS; i++)
        CALL(WAIT, SYNC, 3 + i % 4, BEGIN, &words[0], &words[1], code);
    for (int i = LEVELS; i-- > 0;)
        CALL(WAIT, SYNC, 3 + i % 4, END, &words[0], &words[1], code);
    CALL(WAIT, SYNC, 10, BEGIN, &words[0], &words[1], code);
    CALL(WAIT, SYNC, 10, END, &words[0], &words[1], code);
}

static void tasks(void)
{
    enum { COMPLETE = 1, YIELD, DETACH = 4, LATE = 6, SWITCH = 7, TASKWAIT = 8 };
#define SWITCH_TO(from, status, to) CALL(SCHEDULE, (void *, int, void *), from, status, to)
    uint64_t *first = &words[0], *a = &words[1], *b = &words[2];
    SWITCH_TO(first, SWITCH, a);
    SWITCH_TO(a, SWITCH, b);
    SWITCH_TO(b, DETACH, a);
    SWITCH_TO(b, LATE, NULL);
    SWITCH_TO(a, YIELD, first);
    SWITCH_TO(first, SWITCH, a);
    SWITCH_TO(a, COMPLETE, first);
    SWITCH_TO(first, TASKWAIT, NULL);
}

static void times(int event, int n)
{
    for (int i = 0; i < n; i++)
        for (int endpoint = BEGIN; endpoint <= END; endpoint++)
            if (event == WAIT)
                CALL(WAIT, SYNC, 9, endpoint, &words[0], &words[1], code);
            else
                CALL(WORK, (int, int, void *, void *, uint64_t, void *), 10, endpoint, &words[0], &words[1], 3, code);
}

int main(int count, char **arguments)
{
    what = count > 1 ? arguments[1] : "";
    const char *list = getenv("OMP_TOOL_LIBRARIES");
    char path[4096];
    if (!list) {
        puts("no tool");
        return 0;
    }
    snprintf(path, sizeof path, "%.*s", (int)strcspn(list, ":"), list);
    void *library = dlopen(path, RTLD_LAZY);
    struct started *(*start)(unsigned, const char *) = library ? (void *)dlsym(library, "ompt_start_tool") : NULL;
    struct started *tool = start ? start(202011, "a fake of hetrace") : NULL;
    if (!tool) {
        puts("no tool");
        return 0;
    }
    int begun = tool->initialize(look_up, 0, &tool->data);
    if (!begun) {
        puts("not begun");
        return 0;
    }
    errno = 77;
    if (!strcmp(what, "devices"))
        devices();
    else if (!strcmp(what, "over"))
        over();
    else if (!strcmp(what, "older"))
        older();
    else if (!strcmp(what, "unheard"))
        unheard();
    else if (!strcmp(what, "unpaired"))
        unpaired();
    else if (!strcmp(what, "deep"))
        deep();
    else if (!strcmp(what, "tasks"))
        tasks();
    else if (!strcmp(what, "waits"))
        times(WAIT, count > 2 ? atoi(arguments[2]) : 1);
    else if (!strcmp(what, "works"))
        times(WORK, count > 2 ? atoi(arguments[2]) : 1);
    else
        return 2;
    printf("errno %d\n", errno);
    tool->finalize(&tool->data);
    return 0;
}
