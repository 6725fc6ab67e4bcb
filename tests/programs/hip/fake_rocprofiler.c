/* Stands for rocprofiler-sdk: tools are configured as by the real one, and get what the fake HIP says that its device did.
 * It is a fake: what it shows is what we make of it.
 *
 * Its clock is CLOCK_MONOTONIC and 7000 seconds. A thread of its own hands records over when it is asked to, each once its
 * time has come, the last first, as the real one promises no order. FAKE_ROCPROFILER=locked: devices are in use already;
 * refuses: it traces no copies; silent: it delivers nothing; staged: copies of less than 100 bytes are the host's. */
#include "rocprofiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define APART 7000000000000ull

struct record {
    uint64_t size;
    uint32_t kind;
    int32_t operation;
    uint64_t internal, external, thread, start, end;
    union {
        struct {
            uint64_t to, from, bytes, addresses[2];
        } copy;
        char dispatch[128];
    };
};

enum { CONTEXTS = 4, RECORDS = 4096 };
static struct context {
    rocprofiler_buffer_tracing_cb_t callback;
    void *data;
    int kinds, runs;
    struct record records[RECORDS];
    int count;
} contexts[CONTEXTS];
static int made, state; /* 0: not configured, -1: being configured, 1: configured */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread uint64_t pushed[CONTEXTS][16];
static __thread int depth[CONTEXTS];
static rocprofiler_tool_configure_result_t *tools[CONTEXTS];

static int is(const char *what) {
    const char *value = getenv("FAKE_ROCPROFILER");
    return value && !strcmp(value, what);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

API int rocprofiler_get_timestamp(uint64_t *time) {
    *time = now() + APART;
    return SUCCESS;
}

/* ---- Handing records over */

static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int asked, done;

static void hand_over(struct context *context, uint64_t number) {
    rocprofiler_record_header_t headers[64], *all[64];
    struct record records[64];
    int count = 0;
    pthread_mutex_lock(&mutex);
    for (int i = context->count - 1; i >= 0 && count < 64; i--)
        if (context->records[i].end <= now() + APART) {
            records[count] = context->records[i];
            headers[count] = (rocprofiler_record_header_t){CATEGORY_TRACING, records[count].kind, &records[count]};
            all[count] = &headers[count];
            count++;
            memmove(&context->records[i], &context->records[i + 1],
                    (size_t)(--context->count - i) * sizeof context->records[0]);
        }
    pthread_mutex_unlock(&mutex);
    if (count)
        context->callback((rocprofiler_context_id_t){number + 1}, (rocprofiler_buffer_id_t){number + 1}, all,
                          (size_t)count, context->data, 0);
}

static void *deliver(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (done == asked)
            pthread_cond_wait(&change, &mutex);
        int until = asked;
        pthread_mutex_unlock(&mutex);
        for (int i = 0; i < made; i++)
            for (int before = -1; before != contexts[i].count;) {
                before = contexts[i].count;
                hand_over(&contexts[i], (uint64_t)i);
            }
        pthread_mutex_lock(&mutex);
        done = until;
        pthread_cond_broadcast(&change);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

API int rocprofiler_flush_buffer(rocprofiler_buffer_id_t buffer) {
    if (buffer.handle == 0 || buffer.handle > (uint64_t)made)
        return 3;
    pthread_mutex_lock(&mutex);
    int mine = ++asked;
    pthread_cond_broadcast(&change);
    while (done < mine)
        pthread_cond_wait(&change, &mutex);
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

/* ---- Tools */

static void end(void) {
    for (int i = 0; i < made; i++)
        rocprofiler_flush_buffer((rocprofiler_buffer_id_t){(uint64_t)i + 1});
    for (int i = 0; i < CONTEXTS; i++)
        if (tools[i])
            tools[i]->finalize(tools[i]->tool_data);
}

static void add(rocprofiler_configure_func_t configure, int number) {
    rocprofiler_client_id_t client = {sizeof client, NULL, (uint32_t)number};
    tools[number] = configure ? configure(10000, "1.0.0", (uint32_t)number, &client) : NULL;
}

API int rocprofiler_force_configure(rocprofiler_configure_func_t configure) {
    if (state != 0 || is("locked"))
        return LOCKED;
    state = -1;
    atexit(end);
    add(configure, 0);
    int count = 1;
    const char *named = getenv("ROCP_TOOL_LIBRARIES");
    void *library = named ? dlopen(named, RTLD_LAZY) : NULL;
    if (library)
        add((rocprofiler_configure_func_t)(uintptr_t)dlsym(library, "rocprofiler_configure"), count++);
    void *there = dlsym(RTLD_DEFAULT, "rocprofiler_configure");
    if (there && !library)
        add((rocprofiler_configure_func_t)(uintptr_t)there, count++);
    for (int i = 0; i < count; i++)
        if (tools[i] && tools[i]->initialize(NULL, tools[i]->tool_data) != 0)
            fprintf(stderr, "tool %d does not want to be one\n", i);
    pthread_t thread;
    pthread_create(&thread, NULL, deliver, NULL);
    state = 1;
    return SUCCESS;
}

static struct context *of(uint64_t handle) {
    return handle == 0 || handle > (uint64_t)made ? NULL : &contexts[handle - 1];
}

API int rocprofiler_create_context(rocprofiler_context_id_t *context) {
    if (state != -1)
        return LOCKED;
    context->handle = (uint64_t)++made;
    return SUCCESS;
}

API int rocprofiler_create_buffer(rocprofiler_context_id_t context, size_t size, size_t watermark, int policy,
                                  rocprofiler_buffer_tracing_cb_t callback, void *data, rocprofiler_buffer_id_t *buffer) {
    struct context *found = of(context.handle);
    if (state != -1 || !found || watermark > size || policy == 0 || !callback)
        return state != -1 ? LOCKED : NOT_FOUND;
    found->callback = callback;
    found->data = data;
    buffer->handle = context.handle;
    return SUCCESS;
}

API int rocprofiler_configure_buffer_tracing_service(rocprofiler_context_id_t context, int kind, const int32_t *operations,
                                                     size_t count, rocprofiler_buffer_id_t buffer) {
    struct context *found = of(context.handle);
    if (state != -1 || !found || buffer.handle != context.handle || (operations == NULL) != (count == 0))
        return NOT_FOUND;
    if (kind == MEMORY_COPY && is("refuses"))
        return NOT_IMPLEMENTED;
    found->kinds |= 1 << kind;
    return SUCCESS;
}

API int rocprofiler_start_context(rocprofiler_context_id_t context) {
    struct context *found = of(context.handle);
    if (found)
        found->runs = 1;
    return found ? SUCCESS : NOT_FOUND;
}

API int rocprofiler_stop_context(rocprofiler_context_id_t context) {
    struct context *found = of(context.handle);
    if (found)
        found->runs = 0;
    return found ? SUCCESS : NOT_FOUND;
}

/* ---- Ids of tools */

API int rocprofiler_push_external_correlation_id(rocprofiler_context_id_t context, uint64_t thread, uint64_t id) {
    if (!of(context.handle) || thread != (uint64_t)gettid())
        return NOT_FOUND;
    pushed[context.handle - 1][depth[context.handle - 1]++ & 15] = id;
    return SUCCESS;
}

API int rocprofiler_pop_external_correlation_id(rocprofiler_context_id_t context, uint64_t thread, uint64_t *id) {
    if (!of(context.handle) || thread != (uint64_t)gettid() || depth[context.handle - 1] == 0)
        return NOT_FOUND;
    *id = pushed[context.handle - 1][--depth[context.handle - 1] & 15];
    return SUCCESS;
}

/* ---- What the fake HIP says */

API void fake_rocprofiler_ran(int is_copy, uint64_t start, uint64_t end, size_t bytes) {
    static uint64_t internal;
    if (is("silent") || (is("staged") && is_copy && bytes < 100))
        return;
    pthread_mutex_lock(&mutex);
    internal++;
    for (int i = 0; i < made; i++) {
        struct context *context = &contexts[i];
        uint32_t kind = is_copy ? MEMORY_COPY : KERNEL_DISPATCH;
        if (!context->runs || !(context->kinds & 1 << kind) || context->count == RECORDS)
            continue;
        struct record *record = &context->records[context->count++];
        *record = (struct record){.size = sizeof *record, .kind = kind, .internal = internal, .thread = (uint64_t)gettid(),
                                  .external = depth[i] ? pushed[i][(depth[i] - 1) & 15] : 0,
                                  .start = start + APART, .end = end + APART};
        if (is_copy)
            record->copy.bytes = bytes;
    }
    pthread_mutex_unlock(&mutex);
}
