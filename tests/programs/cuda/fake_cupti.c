/* A CUPTI without a device: libcupti.so.12 and .13 for tests, with the driver fake_cuda.c.
 *
 *   cc -shared -fPIC -pthread -DCUPTI_VERSION=28     -Wl,-soname,libcupti.so.12 ...
 *   cc -shared -fPIC -pthread -DCUPTI_VERSION=130401 -Wl,-soname,libcupti.so.13 ...
 *
 * It has the functions that hetrace uses, and records of the length and with the offsets of
 * its version (apis/cuda/src/device/cupti/layout.rs says where they are from); bytes of
 * fields that hetrace does not read are 0xa5. A driver notifies it of what happens: it opens the
 * library with dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD) or .12, looks up the two
 * functions below, and does so again as long as it has not found them, since CUPTI comes
 * after the driver.
 *
 *   // A driver function begins, whose number in CUPTI is `cbid`: returns the call's
 *   // correlation id. Calls the subscriber.
 *   uint32_t fake_cupti_enter(uint32_t cbid);
 *   // It ends.
 *   void fake_cupti_exit(uint32_t cbid, uint32_t correlation);
 *   // It has caused this. An activity whose end lies in the future is incomplete until then.
 *   void fake_cupti_activity(const struct fake_cupti_activity *activity);
 *
 * The driver must not hold a lock that a thread needs which calls CUPTI and is given
 * buffers back meanwhile; fake_cupti_activity may give back full ones.
 *
 * As the real one does: a flush gives back buffers in which all is complete, a forced one
 * all; the period gives back those that are full; dropped records are counted; a second
 * subscriber is refused.
 *
 *   FAKE_CUPTI_REFUSE  functions and errors, "cuptiSubscribe:39,cuptiActivityEnable:35"
 *   FAKE_CUPTI_SLOW    functions and how long each call takes, in milliseconds, "cuptiSubscribe:15"
 *   FAKE_CUPTI_DROP    every so many-th activity is dropped
 *   FAKE_CUPTI_COUNTS  file for the counts, `name count` in each line; the process's id is
 *                      appended: calls of each function, bytes and buffers given back
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef CUPTI_VERSION
#define CUPTI_VERSION 130401
#endif
#define EXPORT __attribute__((visibility("default")))

/* What a driver reports of an activity. Times are nanoseconds of CLOCK_MONOTONIC. */
struct fake_cupti_activity {
    uint32_t kind; /* 1 copy, 2 fill, 10 kernel, 22 copy between devices, 25 migration */
    uint32_t correlation, device, context, stream;
    uint64_t start, end;
    const char *name; /* of a kernel; it stays */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t registers, static_shared, dynamic_shared, local;
    uint64_t bytes;
    uint32_t copied;      /* CUPTI's kind of copy, or of counter */
    uint32_t from, to;    /* CUPTI's kinds of memory; of migrations, devices */
    uint32_t source, destination; /* devices of a copy between two */
    uint32_t graph;
    uint64_t node;
};

enum { OK = 0, INVALID = 1, END = 12, NO_KIND = 21, NOT_SUPPORTED = 27, TAKEN = 39 };
enum { KINDS = 64, FUNCTIONS = 1024, LAST_FUNCTION = 868, BUFFERS = 256, ENTRIES = 8192 };

#if CUPTI_VERSION >= 130400
enum { KERNEL = 248, COPY = 112, PEER = 96, SET = 104, COUNTER = 104 };
#elif CUPTI_VERSION >= 130300
enum { KERNEL = 232, COPY = 96, PEER = 96, SET = 88, COUNTER = 104 };
#elif CUPTI_VERSION >= 130100
enum { KERNEL = 224, COPY = 96, PEER = 96, SET = 88, COUNTER = 104 };
#elif CUPTI_VERSION >= 130000
enum { KERNEL = 216, COPY = 96, PEER = 96, SET = 88, COUNTER = 104 };
#elif CUPTI_VERSION >= 26
enum { KERNEL = 208, COPY = 96, PEER = 96, SET = 88, COUNTER = 104 };
#else
enum { KERNEL = 208, COPY = 88, PEER = 96, SET = 88, COUNTER = 64 };
#endif

typedef void (*callback)(void *, uint32_t, uint32_t, const void *);
typedef void (*requester)(uint8_t **, size_t *, size_t *);
typedef void (*completer)(void *, uint32_t, uint8_t *, size_t, size_t);

/* The times of a record that is not complete stay 0. */
struct entry {
    uint32_t offset;
    uint64_t start, end;
};

struct buffer {
    uint8_t *at;
    size_t size, used, count;
    uint64_t end; /* when all is complete */
    struct entry entries[ENTRIES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static callback subscriber;
static void *subscriber_data;
static uint8_t enabled[FUNCTIONS], kinds[KINDS];
static requester requested;
static completer completed;
static uint64_t (*their_clock)(void);
static struct buffer *current, *full[BUFFERS];
static size_t full_count, dropped;
static uint32_t correlation;
static unsigned long activities;

static struct { const char *name; unsigned long count; } counts[64];

static void count(const char *name, unsigned long more)
{
    for (size_t i = 0; i < 64; i++) {
        if (!counts[i].name)
            counts[i].name = name;
        if (!strcmp(counts[i].name, name)) {
            __atomic_fetch_add(&counts[i].count, more, __ATOMIC_RELAXED);
            return;
        }
    }
}

/* The number of a function in a list that an environment variable has, or 0. */
static int listed(const char *variable, const char *name)
{
    const char *list = getenv(variable);
    size_t length = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, length) && at[length] == ':')
            return atoi(at + length + 1);
    return 0;
}

/* The error that the environment wants of a function, or 0; after the time that it is to take. */
static int refuse(const char *name)
{
    count(name, 1);
    int slow = listed("FAKE_CUPTI_SLOW", name);
    if (slow)
        usleep(1000 * slow);
    return listed("FAKE_CUPTI_REFUSE", name);
}

#define CALLED() do { int error_ = refuse(__func__); if (error_) return error_; } while (0)

__attribute__((destructor)) static void write_counts(void)
{
    const char *base = getenv("FAKE_CUPTI_COUNTS");
    char path[4096];
    if (!base)
        return;
    snprintf(path, sizeof path, "%s%d", base, (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    for (size_t i = 0; i < 64 && counts[i].name; i++)
        fprintf(file, "%s %lu\n", counts[i].name, counts[i].count);
    fclose(file);
}

static uint64_t clock_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now(void)
{
    return clock_now(CLOCK_MONOTONIC);
}

/* What times of CLOCK_MONOTONIC lack to be of the clock that records have: looked at
 * without being interrupted in between. */
static uint64_t shift(void)
{
    for (int i = 0; ; i++) {
        uint64_t before = now(), theirs = their_clock ? their_clock() : clock_now(CLOCK_REALTIME);
        if (theirs - before < 1000000)
            return 0; /* It is the same clock. */
        if (now() - before < 1000 || i == 1000)
            return theirs - before;
    }
}

/* The one copy of a name. The driver's own may go with its code. */
static const char *kept(const char *name)
{
    static struct name { char *text; struct name *next; } *names, **last = &names;
    for (struct name *n = names; n; n = n->next)
        if (!strcmp(n->text, name))
            return n->text;
    *last = calloc(1, sizeof **last);
    const char *text = (*last)->text = strdup(name);
    last = &(*last)->next;
    return text;
}

static void put32(uint8_t *at, uint32_t value) { memcpy(at, &value, 4); }
static void put64(uint8_t *at, uint64_t value) { memcpy(at, &value, 8); }

static size_t length_of(uint32_t kind)
{
    switch (kind) {
    case 1: return COPY;
    case 2: return SET;
    case 3: case 10: return KERNEL;
    case 22: return PEER;
    case 25: return COUNTER;
    default: return 0;
    }
}

/* A record without its times. */
static void fill(uint8_t *at, const struct fake_cupti_activity *a)
{
    memset(at, 0xa5, length_of(a->kind));
    put32(at, a->kind);
    put64(at + 16, 0);
    put64(at + 24, 0);
    if (a->kind == 10) {
        uint16_t registers = (uint16_t)a->registers;
        memcpy(at + 6, &registers, 2);
        put32(at + 40, a->device), put32(at + 44, a->context), put32(at + 48, a->stream);
        memcpy(at + 52, a->grid, 12);
        memcpy(at + 64, a->block, 12);
        put32(at + 76, a->static_shared), put32(at + 80, a->dynamic_shared), put32(at + 84, a->local);
        put32(at + 92, a->correlation);
        put64(at + 104, (uint64_t)(uintptr_t)kept(a->name));
        put64(at + 144, a->node);
        put32(at + 156, a->graph);
        memcpy(at + 176, a->cluster, 12);
        return;
    }
    put64(at + 8, a->bytes);
    if (a->kind == 25) {
        put32(at + 4, a->copied);
        put32(at + 40, a->from), put32(at + 44, a->to);
        put32(at + 52, (uint32_t)getpid());
        return;
    }
    put32(at + 32, a->device), put32(at + 36, a->context), put32(at + 40, a->stream);
    if (a->kind == 2) {
        uint16_t memory = (uint16_t)a->to;
        put32(at + 44, a->correlation);
        memcpy(at + 50, &memory, 2);
        put64(at + 64, a->node), put32(at + 72, a->graph);
        return;
    }
    at[4] = (uint8_t)a->copied, at[5] = (uint8_t)a->from, at[6] = (uint8_t)a->to;
    if (a->kind == 1) {
        put32(at + 44, a->correlation);
        put64(at + 64, a->node), put32(at + 72, a->graph);
    } else {
        put32(at + 44, a->source), put32(at + 52, a->destination), put32(at + 60, a->correlation);
        put64(at + 72, a->node), put32(at + 80, a->graph);
    }
}

/* Gives a buffer back, without the lock. */
static void give_back(struct buffer *buffer)
{
    uint64_t lack = shift(), end = now();
    for (size_t i = 0; i < buffer->count; i++) {
        struct entry *entry = &buffer->entries[i];
        if (entry->end > end)
            continue;
        put64(buffer->at + entry->offset + 16, entry->start + lack);
        put64(buffer->at + entry->offset + 24, entry->end + lack);
    }
    count("buffers", 1);
    count("bytes", buffer->used);
    completed(NULL, 0, buffer->at, buffer->size, buffer->used);
    free(buffer);
}

/* Gives back what is full and complete, and with `all` what is not full, with `forced`
 * what is not complete. Called with the lock, which it lets go meanwhile. */
static void give_back_some(int all, int forced)
{
    struct buffer *ready[BUFFERS + 1];
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < full_count; i++) {
        if (forced || full[i]->end <= now())
            ready[count++] = full[i];
        else
            full[kept++] = full[i];
    }
    full_count = kept;
    if (all && current && (forced || current->end <= now())) {
        ready[count++] = current;
        current = NULL;
    }
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++)
        give_back(ready[i]);
    pthread_mutex_lock(&lock);
}

/* Room for a record, or NULL. Called with the lock. */
static uint8_t *room(size_t length)
{
    if (current && (current->used + length > current->size || current->count == ENTRIES)) {
        if (full_count == BUFFERS)
            return NULL;
        full[full_count++] = current;
        current = NULL;
    }
    if (!current) {
        struct buffer *buffer = calloc(1, sizeof *buffer);
        size_t records = 0;
        if (!buffer || !requested)
            return free(buffer), NULL;
        requested(&buffer->at, &buffer->size, &records);
        if (!buffer->at || buffer->size < length)
            return free(buffer), NULL;
        current = buffer;
    }
    return current->at + current->used;
}

EXPORT void fake_cupti_activity(const struct fake_cupti_activity *activity)
{
    size_t length = length_of(activity->kind);
    const char *drop = getenv("FAKE_CUPTI_DROP");
    pthread_mutex_lock(&lock);
    if (!length || !kinds[activity->kind]) {
        pthread_mutex_unlock(&lock);
        return;
    }
    activities++;
    uint8_t *at = drop && activities % strtoul(drop, NULL, 10) == 0 ? NULL : room(length);
    if (at) {
        fill(at, activity);
        current->entries[current->count++] =
            (struct entry){ (uint32_t)current->used, activity->start, activity->end };
        current->used += length;
        if (activity->end > current->end)
            current->end = activity->end;
    } else {
        dropped++;
    }
    give_back_some(0, 0);
    pthread_mutex_unlock(&lock);
}

static void call_back(uint32_t cbid, uint32_t id, uint32_t site)
{
    uint8_t data[72] = { 0 };
    callback call = subscriber;
    if (!call || cbid >= FUNCTIONS || !enabled[cbid])
        return;
    put32(data, site);
    put32(data + 64, id);
    call(subscriber_data, 1, cbid, data);
}

EXPORT uint32_t fake_cupti_enter(uint32_t cbid)
{
    uint32_t id = __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED);
    call_back(cbid, id, 0);
    return id;
}

EXPORT void fake_cupti_exit(uint32_t cbid, uint32_t id)
{
    call_back(cbid, id, 1);
}

EXPORT int cuptiGetVersion(uint32_t *version)
{
    CALLED();
    *version = CUPTI_VERSION;
    return OK;
}

EXPORT int cuptiGetTimestamp(uint64_t *time)
{
    CALLED();
    *time = now() + shift();
    return OK;
}

EXPORT int cuptiSubscribe(void **handle, callback call, void *data)
{
    CALLED();
    if (!handle || !call)
        return INVALID;
    if (subscriber)
        return TAKEN;
    subscriber_data = data;
    subscriber = call;
    *handle = &subscriber;
    return OK;
}

EXPORT int cuptiUnsubscribe(void *handle)
{
    CALLED();
    if (handle != &subscriber)
        return INVALID;
    subscriber = NULL;
    memset(enabled, 0, sizeof enabled);
    return OK;
}

EXPORT int cuptiEnableCallback(uint32_t on, void *handle, uint32_t domain, uint32_t cbid)
{
    CALLED();
    if (handle != &subscriber || domain != 1 || cbid == 0 || cbid > LAST_FUNCTION)
        return INVALID;
    enabled[cbid] = on != 0;
    return OK;
}

EXPORT int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
    CALLED();
    (void)domain, (void)name;
    return cbid > LAST_FUNCTION ? INVALID : NOT_SUPPORTED;
}

EXPORT int cuptiActivityEnable(uint32_t kind)
{
    CALLED();
    if (!length_of(kind))
        return NO_KIND;
    kinds[kind] = 1;
    return OK;
}

EXPORT int cuptiActivityDisable(uint32_t kind)
{
    CALLED();
    if (!length_of(kind))
        return NO_KIND;
    kinds[kind] = 0;
    return OK;
}

EXPORT int cuptiActivityRegisterCallbacks(requester request, completer complete)
{
    CALLED();
    if (!request || !complete)
        return INVALID;
    requested = request;
    completed = complete;
    return OK;
}

EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    if (!buffer || !record)
        return INVALID;
    uint8_t *next = buffer;
    uint32_t kind;
    if (*record) {
        memcpy(&kind, *record, 4);
        next = *record + length_of(kind);
    }
    if (next + 8 > buffer + valid)
        return END;
    memcpy(&kind, next, 4);
    if (!length_of(kind) || next + length_of(kind) > buffer + valid)
        return NO_KIND;
    *record = next;
    return OK;
}

EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *number)
{
    CALLED();
    (void)context, (void)stream;
    pthread_mutex_lock(&lock);
    *number = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int cuptiActivityFlushAll(uint32_t flags)
{
    CALLED();
    pthread_mutex_lock(&lock);
    if (completed)
        give_back_some(1, flags & 1);
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int cuptiActivityFlushPeriod(uint32_t milliseconds)
{
    CALLED();
    (void)milliseconds;
    return OK;
}

EXPORT int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
    CALLED();
    (void)attribute;
    return size && value ? OK : INVALID;
}

EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
    CALLED();
    if (!clock)
        return INVALID;
    their_clock = clock;
    return OK;
}

EXPORT int cuptiActivityConfigureUnifiedMemoryCounter(void *config, uint32_t number)
{
    CALLED();
    return config && number ? OK : INVALID;
}
