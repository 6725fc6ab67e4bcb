/* What APIs cost that have no library: the program has their static part inside, which finds its tool by a variable.
 *
 *   marked N WHICH    N rounds of a loop, in a function of this name: hetmarks, nvtx, itt, itt_counter, ompt
 */
#include "../../include/hetrace.h"
#include "nvtx_client.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A loop in two functions: one for the calls before, in which things are done once, and one that is measured. */
#define LOOP(name)                                                                 \
    __attribute__((always_inline)) static inline void body_##name(long n);          \
    __attribute__((noinline, no_icf)) static void name(long n) { body_##name(n); }  \
    __attribute__((noinline, no_icf)) static void before_##name(long n) { body_##name(n); } \
    __attribute__((always_inline)) static inline void body_##name(long n)

LOOP(hetmarks)
{
    while (n--) {
        hetrace_push("step");
        hetrace_pop();
    }
}

LOOP(nvtx)
{
    static nvtxEventAttributes_t a = {.version = NVTX_VERSION,
                                      .size = sizeof a,
                                      .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                      .message = {.ascii = "step"}};
    while (n--) {
        nvtxRangePushEx(&a);
        nvtxRangePop();
    }
}

/* ---- ITT's static part, as far as the loops need it -------------------------------------------------- */

struct id {
    uint64_t address, extra, reserved;
};
static void *(*itt_domain_create)(const char *);
static void *(*itt_string_create)(const char *);
static void *(*itt_counter_create)(const char *, const char *);
static void (*itt_begin)(void *, struct id, struct id, void *);
static void (*itt_end)(void *);
static void (*itt_inc)(void *);

struct listed {
    const char *name;
    void *place;
    const void *first, *without;
    uint32_t group;
};
static struct listed list[] = {
    {"__itt_domain_create", &itt_domain_create, 0, 0, 1},
    {"__itt_string_handle_create", &itt_string_create, 0, 0, 1},
    {"__itt_counter_create", &itt_counter_create, 0, 0, 1},
    {"__itt_task_begin", &itt_begin, 0, 0, 1},
    {"__itt_task_end", &itt_end, 0, 0, 1},
    {"__itt_counter_inc", &itt_inc, 0, 0, 1},
    {0},
};
static struct {
    unsigned char magic[8];
    uint64_t version[3], atomics[3];
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **library_path;
    struct listed *list;
    void *next, *threads, *domains, *texts;
    int state;
    void *counters;
} part = {.magic = {0xED, 0xAB, 0xAB, 0xEC}, .version = {3, 0, 20230630}, .list = list};

static void *domain, *text, *counter;

static void itt_start(void)
{
    const char *path = getenv("INTEL_LIBITTNOTIFY64");
    void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
    void (*start)(void *, uint32_t) = NULL;
    if (tool)
        *(void **)&start = dlsym(tool, "__itt_api_init");
    if (start)
        start(&part, ~0u);
    domain = itt_domain_create ? itt_domain_create("domain") : NULL;
    text = itt_string_create ? itt_string_create("step") : NULL;
    counter = itt_counter_create ? itt_counter_create("counter", "domain") : NULL;
}

LOOP(itt)
{
    static const struct id none;
    while (n--) {
        if (itt_begin)
            itt_begin(domain, none, none, text);
        if (itt_end)
            itt_end(domain);
    }
}

LOOP(itt_counter)
{
    while (n--)
        if (itt_inc)
            itt_inc(counter);
}

/* ---- a runtime of OpenMP that starts a tool ---------------------------------------------------------- */

typedef void (*any)(void);
enum { WAIT = 16, BEGIN = 1, END = 2, TASKWAIT = 5, ALWAYS = 5, EVENTS = 64 };
struct started {
    int (*initialize)(any (*)(const char *), int, uint64_t *);
    void (*finalize)(uint64_t *);
    uint64_t data;
};
static any callbacks[EVENTS];

static int set_callback(int event, any callback)
{
    callbacks[event] = callback;
    return ALWAYS;
}

static any look_up(const char *name)
{
    return strcmp(name, "ompt_set_callback") ? NULL : (any)set_callback;
}

static struct started *tool;

static void ompt_start(void)
{
    const char *path = getenv("OMP_TOOL_LIBRARIES");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    struct started *(*start)(unsigned, const char *) = NULL;
    if (library)
        *(void **)&start = dlsym(library, "ompt_start_tool");
    tool = start ? start(201811, "none") : NULL;
    if (tool && !tool->initialize(look_up, 0, &tool->data))
        memset(callbacks, 0, sizeof callbacks);
}

LOOP(ompt)
{
    static uint64_t words[2];
    void (*wait)(int, int, void *, void *, const void *) = (void *)callbacks[WAIT];
    while (n--)
        if (wait) {
            wait(TASKWAIT, BEGIN, &words[0], &words[1], (void *)ompt);
            wait(TASKWAIT, END, &words[0], &words[1], (void *)ompt);
        }
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*start)(void), (*before)(long), (*loop)(long);
    } all[] = {
        {"hetmarks", NULL, before_hetmarks, hetmarks},
        {"nvtx", NULL, before_nvtx, nvtx},
        {"itt", itt_start, before_itt, itt},
        {"itt_counter", itt_start, before_itt_counter, itt_counter},
        {"ompt", ompt_start, before_ompt, ompt},
    };
    for (size_t i = 0; count == 3 && i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i].name, arguments[2])) {
            if (all[i].start)
                all[i].start();
            all[i].before(500);
            all[i].loop(atol(arguments[1]));
            if (tool)
                tool->finalize(&tool->data);
            return 0;
        }
    fprintf(stderr, "usage: marked N hetmarks|nvtx|itt|itt_counter|ompt\n");
    return 2;
}
