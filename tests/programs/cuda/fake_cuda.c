/* A driver without a device: libcuda.so.1 for tests.
 *
 * Every function that the model has is exported; those that do nothing here are made by
 * tests/src/fake.rs, which also makes the tables that this file includes. The rest
 * behaves as the driver does, as far as a tracer could notice: contexts, streams and
 * events, the two default streams, captures and graphs, errors that stay.
 *
 * Time is simulated. Each device has a clock that runs a little wrong; an operation starts
 * when its stream is free and takes the time that its name says (a kernel "k5000" takes
 * 5,000 ns). Nothing happens in the background: whoever asks or waits compares clocks.
 *
 *   FAKE_CUDA_DEVICES     how many devices there are (1)
 *   FAKE_CUDA_KERNEL_NS   what a kernel takes whose name does not say it (1000)
 *   FAKE_CUDA_VERSION     what cuDriverGetVersion returns (13000)
 *   FAKE_CUDA_OLD         what drivers before 12.0 did not have returns an error: ids, names
 *   FAKE_CUDA_SHARED      file of zeros, 8 bytes for each device: processes that have it share the devices,
 *                         which then do one thing at a time
 *   FAKE_CUDA_COUNTS      file for the counts of calls, `name count` in each line, and
 *                         for misuse of objects that have ended; the process's id is appended
 *   FAKE_CUDA_LOG         file for what devices did: `kind name device context stream start end
 *                         blocks threads bytes from to graph node`, times in ns of
 *                         CLOCK_MONOTONIC, memories as CUPTI counts them; as above
 *
 *   FAKE_CUDA_REFUSES     a text: code that has it is refused with CUDA_ERROR_INVALID_PTX, in which the log says so
 *   FAKE_CUDA_REFUSES_LINK
 *                         a text: links of code that has it do not complete
 *   FAKE_CUDA_REFUSES_LAUNCH
 *                         a text: kernels whose names have it can't be launched
 *   FAKE_CUDA_REFUSES_CLONE, FAKE_CUDA_REFUSES_TWIN, FAKE_CUDA_EDGES
 *                         no graph can be copied; no executable of a copy can be launched; no graph says its edges
 *
 *   FAKE_CUDA_FULL        a pool that is full is marked so in the host's memory, too, before the launch returns
 *
 * Code that is PTX has the kernels that are in the text; of any other, each name is a kernel. A kernel whose module has a
 * variable `__hetrace_inside` that is not 0, and whose name ends so, records where it points: one record for each launch.
 *
 * Objects are never freed, so that the use of one that has ended is seen.
 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake_cuda_tables.h" /* FUNCTIONS, enum of ID_name, struct entry ENTRIES[] */

#define EXPORT __attribute__((visibility("default")))
#define CALLED(name) __atomic_fetch_add(&fake_counts[ID_##name], 1, __ATOMIC_RELAXED)

unsigned long fake_counts[FUNCTIONS];

enum { MOST_DEVICES = 8, MOST_OPS = 1 << 18, STACK = 32 };
enum { ALIVE = 0x600d, DEAD = 0xdead };

struct fake_stream {
    int state;
    struct fake_ctx *ctx;
    uint64_t id;
    unsigned flags;
    int priority;
    int64_t end; /* device time when it is free */
    struct fake_graph *capture;
    struct fake_stream *next;
};

struct fake_ctx {
    int state;
    int device;
    uint64_t id;
    int64_t fault; /* device time of an illegal access; 0: none */
    struct fake_stream legacy;
    struct fake_stream *streams;
    struct fake_ctx *next;
};

struct fake_event {
    int state;
    struct fake_ctx *ctx;
    unsigned flags;
    int64_t time; /* device time; 0: not recorded */
    struct fake_event *next;
};

struct variable {
    struct fake_ctx *ctx; /* NULL: of a module, which has one */
    uint64_t value;
    struct variable *next;
};

struct fake_module {
    int state;
    int library;
    char *text; /* PTX; NULL: any name is a kernel */
    struct fake_ctx *ctx;
    struct variable *bases;
    struct fake_function *functions;
};

struct fake_function {
    int state;
    char name[120];
    int most_shared;             /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    struct fake_function *kernel; /* of which it is the function in a context */
    struct fake_ctx *ctx;
    struct fake_module *module;
    struct fake_function *next;
};

struct op {
    const char *kind;
    char name[32];
    int64_t start, end;
    uint64_t blocks, threads, bytes;
    uint64_t ctx, stream;
    int device, from, to;
    uint32_t graph, node;
};

struct node {
    const char *kind;
    struct fake_function *function;
    uint64_t bytes;
    unsigned grid[3], block[3], shared;
    int from, to;           /* kinds of memory, as CUPTI counts them */
    uint64_t source, target;
    uint32_t graph, number; /* of a graph, from 1 */
    struct fake_event *event;
    struct fake_node *handle;
    int is_off, wait_count, *waits; /* places of the nodes that it waits for */
};

struct fake_graph {
    int state, invalid, mode;
    struct fake_stream *origin;
    uint32_t id;
    int count, room;
    struct node *nodes;
    struct fake_graph *of, *original; /* what an executable is of, and what a copy is of */
    int64_t end;                      /* device time when an executable is through */
};

struct memory {
    char *at;
    size_t bytes;
    int kind; /* 1 host, 2 device, 3 managed */
    struct memory *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner; /* the process that was initialized */
static int devices = 1;
static long kernel_ns = 1000;
static struct fake_ctx *contexts, *primary[MOST_DEVICES];
static struct fake_event *events;
static int retained[MOST_DEVICES];
static struct memory *memories;
static uint64_t next_id = 1;
static int captures; /* in global mode, not ended */
static struct op *ops;
static size_t op_count;
static unsigned long misuses[3]; /* contexts, streams, events */

static __thread struct fake_ctx *stack[STACK];
static __thread int depth;
static __thread int in_callback; /* of a host function, where nothing may be asked */
static __thread int relaxed; /* capture mode of this thread: 0 global, 1 thread local, 2 relaxed */
static __thread struct { struct fake_ctx *ctx; struct fake_stream stream; } per_thread[8];

static int is_old(void) { return getenv("FAKE_CUDA_OLD") != NULL; }

/* ---- Clocks */

static int64_t host_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Each device's clock has its own offset, and 20 ppm of drift more than the one before. */
static int64_t to_device(int d, int64_t host)
{
    return host + host / 50000 * (d + 1) + 777000000000LL * (d + 1);
}

static int64_t to_host(int d, int64_t device)
{
    int64_t there = device - 777000000000LL * (d + 1);
    return there - there / (50000 + d + 1) * (d + 1);
}

static int64_t device_now(int d) { return to_device(d, host_now()); }

/* ---- What is reported at the end */

static void at_end(void)
{
    char path[4096];
    const char *counts = getenv("FAKE_CUDA_COUNTS"), *log = getenv("FAKE_CUDA_LOG");
    if (owner != getpid())
        return;
    if (counts) {
        snprintf(path, sizeof path, "%s.%d", counts, getpid());
        FILE *f = fopen(path, "w");
        for (int i = 0; f && i < FUNCTIONS; i++)
            if (fake_counts[i])
                fprintf(f, "%s %lu\n", fake_names[i], fake_counts[i]);
        for (int i = 0; f && i < 3; i++)
            fprintf(f, "misuse.%s %lu\n", (const char *[]){"context", "stream", "event"}[i], misuses[i]);
        if (f)
            fclose(f);
    }
    if (log) {
        snprintf(path, sizeof path, "%s.%d", log, getpid());
        FILE *f = fopen(path, "w");
        for (size_t i = 0; f && i < op_count; i++) {
            struct op *o = &ops[i];
            fprintf(f, "%s %s %d %lu %lu %ld %ld %lu %lu %lu %d %d %u %u\n", o->kind, o->name, o->device,
                    (unsigned long)o->ctx, (unsigned long)o->stream, (long)to_host(o->device, o->start),
                    (long)to_host(o->device, o->end), (unsigned long)o->blocks,
                    (unsigned long)o->threads, (unsigned long)o->bytes, o->from, o->to, o->graph,
                    o->node);
        }
        if (f)
            fclose(f);
    }
}

/* ---- Contexts and streams */

static struct fake_ctx *current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

static CUresult check(struct fake_ctx *c)
{
    if (owner != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c->state != ALIVE) {
        misuses[0]++;
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return c->fault && device_now(c->device) >= c->fault ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static struct fake_stream *own_stream(struct fake_ctx *c)
{
    for (int i = 0; i < 8; i++) {
        if (per_thread[i].ctx == c)
            return &per_thread[i].stream;
        if (!per_thread[i].ctx) {
            per_thread[i].ctx = c;
            per_thread[i].stream = (struct fake_stream){.state = ALIVE, .ctx = c, .id = next_id++};
            return &per_thread[i].stream;
        }
    }
    return NULL;
}

/* The stream that is meant; `flavour` is the one of the function's two variants. */
static CUresult stream_of(CUstream s, int flavour, struct fake_stream **out)
{
    struct fake_ctx *c = current();
    if (!s)
        s = flavour ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD) {
        CUresult e = check(c);
        if (e && e != CUDA_ERROR_ILLEGAL_ADDRESS)
            return e;
        *out = s == CU_STREAM_LEGACY ? &c->legacy : own_stream(c);
        return e;
    }
    if (s->state != ALIVE) {
        misuses[1]++;
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = s;
    return check(s->ctx);
}

static int is_legacy(struct fake_stream *s) { return s == &s->ctx->legacy; }

/* A capture of a blocking stream of this context, with which the legacy stream would meddle. */
static struct fake_graph *meddled(struct fake_stream *s)
{
    if (!is_legacy(s))
        return NULL;
    for (struct fake_stream *t = s->ctx->streams; t; t = t->next)
        if (t->state == ALIVE && t->capture && !(t->flags & 1))
            return t->capture;
    return NULL;
}

/* Calls that no capture allows, unless their thread says that it knows better. */
static CUresult unsafe_call(void)
{
    if (captures == 0 || relaxed)
        return CUDA_SUCCESS;
    for (struct fake_ctx *c = contexts; c; c = c->next)
        for (struct fake_stream *t = c->streams; t; t = t->next)
            if (t->capture && t->capture->mode == 0)
                t->capture->invalid = 1;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* When something put into a stream now would start: blocking streams and the legacy one
 * wait for each other. */
static struct fake_stream *in_graph; /* nodes of a graph follow each other without a gap */

static int64_t start_of(struct fake_stream *s)
{
    if (s == in_graph)
        return s->end;
    int64_t at = device_now(s->ctx->device);
    if (s->end > at)
        at = s->end;
    if (!(s->flags & 1) && !is_legacy(s) && s->ctx->legacy.end > at)
        at = s->ctx->legacy.end;
    if (is_legacy(s))
        for (struct fake_stream *t = s->ctx->streams; t; t = t->next)
            if (t->state == ALIVE && !(t->flags & 1) && t->end > at)
                at = t->end;
    return at;
}

/* When each device is free, in its own time; none if it is not shared. */
static int64_t *shared_until(void)
{
    static int64_t *until;
    const char *path = getenv("FAKE_CUDA_SHARED");
    if (path && !until) {
        int f = open(path, O_RDWR | O_CLOEXEC);
        void *at = mmap(NULL, MOST_DEVICES * sizeof *until, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
        if (f < 0 || at == MAP_FAILED)
            abort();
        close(f);
        until = at;
    }
    return until;
}

/* Takes a device that others have, too, from when it is free. */
static int64_t take_device(int device, int64_t start, int64_t takes)
{
    int64_t *until = shared_until();
    if (!until)
        return start;
    int64_t before = __atomic_load_n(&until[device], __ATOMIC_ACQUIRE), at;
    do
        at = before > start ? before : start;
    while (!__atomic_compare_exchange_n(&until[device], &before, at + takes, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return at;
}

#include "fake_cuda_cupti.h"
#include "fake_cuda_inside.h"

static void run(struct fake_stream *s, struct node n, int64_t takes)
{
    int64_t start = take_device(s->ctx->device, start_of(s), takes);
    s->end = start + takes;
    if (n.function && !strcmp(n.function->name, "fault") && !s->ctx->fault)
        s->ctx->fault = s->end;
    if (n.function)
        record_inside(s, n.function);
    if (!ops)
        ops = calloc(MOST_OPS, sizeof *ops);
    notify_cupti(s, &n, start);
    if (ops && op_count < MOST_OPS) {
        struct op *o = &ops[op_count++];
        *o = (struct op){.kind = n.kind, .start = start, .end = s->end,
                         .blocks = (uint64_t)n.grid[0] * n.grid[1] * n.grid[2],
                         .threads = (uint64_t)n.block[0] * n.block[1] * n.block[2],
                         .bytes = n.bytes, .ctx = s->ctx->id, .stream = s->id,
                         .device = s->ctx->device, .from = n.from, .to = n.to,
                         .graph = n.graph, .node = n.number};
        snprintf(o->name, sizeof o->name, "%.31s", n.function ? n.function->name : "-");
    }
}

static int64_t takes(struct node n)
{
    if (!n.function)
        return 200 + (int64_t)n.bytes / 10;
    const char *name = n.function->name;
    return name[0] == 'k' && name[1] >= '0' && name[1] <= '9' ? atol(name + 1) : kernel_ns;
}

/* Puts work into a stream, or into the graph that the stream is captured to. */
static CUresult put(struct fake_stream *s, struct node n)
{
    struct fake_graph *other = meddled(s);
    if (other) {
        other->invalid = 1;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    struct fake_graph *g = s->capture;
    if (g) {
        if (g->count == g->room)
            g->nodes = realloc(g->nodes, (g->room = 2 * g->room + 64) * sizeof *g->nodes);
        if (g->count) {
            n.waits = malloc(sizeof *n.waits);
            n.waits[n.wait_count++] = g->count - 1;
        }
        g->nodes[g->count++] = n;
        return CUDA_SUCCESS;
    }
    run(s, n, takes(n));
    return CUDA_SUCCESS;
}

static void wait_until(int device, int64_t time)
{
    int64_t left;
    pthread_mutex_unlock(&lock);
    while ((left = time - device_now(device)) > 0) {
        struct timespec t = {left / 1000000000, left % 1000000000};
        nanosleep(&t, NULL);
    }
    pthread_mutex_lock(&lock);
}

/* Under the lock, from the opening brace to `LEAVE`. */
#define ENTER(name) CALLED(name); cupti_begins(#name); pthread_mutex_lock(&lock)
#define LEAVE(error)                                                                               \
    do {                                                                                           \
        CUresult leave_ = (error);                                                                 \
        pthread_mutex_unlock(&lock);                                                               \
        cupti_ends();                                                                              \
        return leave_;                                                                             \
    } while (0)

#include "fake_cuda_objects.h"
#include "fake_cuda_work.h"
#include "fake_cuda_graphs.h"
