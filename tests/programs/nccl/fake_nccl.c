/* Stands for libnccl.so.2, and with RCCL for AMD's librccl.so.1: communicators over shared memory,
 * collectives that check their arguments and launch one kernel on the driver (on_cuda.h) or on HIP
 * (on_hip.h). No data is moved.
 *
 * Every function that the model has is exported; those that do nothing here are made by
 * tests/src/fake_nccl.rs.
 *
 *   FAKE_NCCL_VERSION   what ncclGetVersion returns (22703)
 *
 * The ranks of a communicator meet in a file whose name is in the unique id; the last one that
 * leaves removes it. While a rank is missing, the others wait.
 */
#define _GNU_SOURCE
#include "fake_nccl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { MOST_RANKS = 16, MOST_SPLITS = 16, MOST_QUEUED = 64, ALIVE = 0xc0111, DEAD = 0xdead };

/* What the ranks share. */
struct meeting {
    int arrived[MOST_RANKS], left;
    struct { int here[MOST_RANKS], color[MOST_RANKS], key[MOST_RANKS]; } splits[MOST_SPLITS];
};

struct fake_comm {
    int state, rank, size, device, finalized;
    int members[MOST_RANKS]; /* their ranks where they met */
    struct meeting *meeting;
    char path[128]; /* empty: a part of another one */
    int *splits, own_splits;
};

struct work {
    ncclComm_t comm;
    cudaStream_t stream;
    const char *kernel;
};

static __thread struct { int depth, failed, count; struct work queued[MOST_QUEUED]; } group;
static __thread char last_error[256];

static ncclResult_t fail(ncclResult_t code, const char *text)
{
    snprintf(last_error, sizeof last_error, "%s", text);
    if (group.depth > 0 && !group.failed)
        group.failed = code;
    return code;
}

#ifdef RCCL
#include "on_hip.h"
#else
#include "on_cuda.h"
#endif

static ncclResult_t start(const struct work *w)
{
    if (!reach_driver() || launch(w->kernel, 2 * w->comm->size, w->stream))
        return fail(ncclUnhandledCudaError, "a launch was refused");
    return ncclSuccess;
}

/* ---- Communicators */

static void pause_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

static int load_of(int *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
static void store(int *place, int value) { __atomic_store_n(place, value, __ATOMIC_RELEASE); }

/* An id is binary, as the real one's: it begins with a 0 byte and a number, and what it is
 * for stands behind more of them. */
enum { PLACE = 32 };

static struct meeting *meet(const char *path)
{
    int fd = open(path, O_RDWR);
    if (fd < 0)
        return NULL;
    void *at = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static int all_here(ncclComm_t c)
{
    for (int i = 0; i < c->size; i++)
        if (!load_of(&c->meeting->arrived[i]))
            return 0;
    return 1;
}

EXPORT ncclResult_t ncclGetVersion(int *version)
{
    const char *v = getenv("FAKE_NCCL_VERSION");
    if (!version)
        return fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = v ? atoi(v) : 22703;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    const char *folder = getenv("TMPDIR");
    char *path = id->internal + PLACE;
    snprintf(path, sizeof id->internal - PLACE, "%.70s/fake-nccl-XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, sizeof(struct meeting)))
        return fail(ncclSystemError, "no place to meet");
    static unsigned char made;
    id->internal[1] = (char)(0xc0 + __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
    memcpy(id->internal + 2, path + strlen(path) - 6, 6);
    id->internal[8] = 2; /* The family of an address. */
    close(fd);
    return ncclSuccess;
}

static ncclResult_t init(ncclComm_t *out, int size, ncclUniqueId id, int rank, int blocking)
{
    if (!out || size < 1 || size > MOST_RANKS || rank < 0 || rank >= size)
        return fail(ncclInvalidArgument, "Invalid rank requested");
    if (!reach_driver())
        return fail(ncclUnhandledCudaError, "no driver");
    ncclComm_t c = calloc(1, sizeof *c);
    *c = (struct fake_comm){.state = ALIVE, .rank = rank, .size = size};
    snprintf(c->path, sizeof c->path, "%s", id.internal + PLACE);
    c->splits = &c->own_splits;
    for (int i = 0; i < size; i++)
        c->members[i] = i;
    current_device(&c->device);
    if (!(c->meeting = meet(c->path)))
        return fail(ncclSystemError, "nobody meets there");
    store(&c->meeting->arrived[rank], 1);
    *out = c;
    if (!blocking)
        return ncclInProgress;
    while (!all_here(c))
        pause_a_little();
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId id, int rank)
{
    return init(out, size, id, rank, 1);
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    return init(out, size, id, rank, !config || config->blocking != 0);
}

EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *out, int count, const int *devices)
{
    ncclUniqueId id;
    ncclResult_t e = ncclGetUniqueId(&id);
    for (int i = 0; !e && i < count; i++) {
        e = init(&out[i], count, id, i, 0);
        e = e == ncclInProgress ? ncclSuccess : e;
        if (!e && devices)
            out[i]->device = devices[i];
    }
    return e;
}

static ncclResult_t check(ncclComm_t c)
{
    if (!c)
        return fail(ncclInvalidArgument, "comm argument is NULL");
    if (c->state != ALIVE)
        return fail(ncclInvalidUsage, "comm has ended");
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    (void)config;
    ncclResult_t e = check(c);
    if (e || !out)
        return e ? e : fail(ncclInvalidArgument, "newcomm argument is NULL");
    int number = (*c->splits)++;
    if (number >= MOST_SPLITS)
        return fail(ncclInvalidUsage, "too many splits");
    *out = NULL;
    int mine = c->members[c->rank];
    c->meeting->splits[number].color[mine] = color;
    c->meeting->splits[number].key[mine] = key;
    store(&c->meeting->splits[number].here[mine], 1);
    for (int i = 0; i < c->size; i++)
        while (!load_of(&c->meeting->splits[number].here[c->members[i]]))
            pause_a_little();
    if (color < 0)
        return ncclSuccess;
    ncclComm_t n = calloc(1, sizeof *n);
    *n = (struct fake_comm){.state = ALIVE, .device = c->device, .meeting = c->meeting, .splits = c->splits};
    for (int i = 0; i < c->size; i++) {
        int other = c->members[i], its = c->meeting->splits[number].key[other];
        if (c->meeting->splits[number].color[other] != color)
            continue;
        n->members[n->size++] = other;
        n->rank += its < key || (its == key && i < c->rank);
    }
    *out = n;
    return ncclSuccess;
}

static ncclResult_t end(ncclComm_t c)
{
    ncclResult_t e = check(c);
    if (e)
        return e;
    c->state = DEAD;
    if (c->path[0] && __atomic_add_fetch(&c->meeting->left, 1, __ATOMIC_ACQ_REL) == c->size)
        unlink(c->path);
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    ncclResult_t e = check(c);
    if (!e)
        c->finalized = 1;
    return e;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t c) { return end(c); }
EXPORT ncclResult_t ncclCommAbort(ncclComm_t c) { return end(c); }

#define RETURN(name, member)                                                                         \
    EXPORT ncclResult_t name(ncclComm_t c, int *out)                                               \
    {                                                                                              \
        ncclResult_t e = check(c);                                                                 \
        if (!e)                                                                                    \
            *out = c->member;                                                                      \
        return e;                                                                                  \
    }
RETURN(ncclCommCount, size)
RETURN(ncclCommUserRank, rank)
RETURN(ncclCommCuDevice, device)

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *out)
{
    ncclResult_t e = check(c);
    if (!e)
        *out = all_here(c) ? ncclSuccess : ncclInProgress;
    return e;
}

EXPORT const char *ncclGetErrorString(ncclResult_t code)
{
    static const char *const texts[] = {
        "no error", "unhandled cuda error", "unhandled system error", "internal error",
        "invalid argument", "invalid usage", "remote process exited or there was a network error",
        "operation in progress",
    };
    return code >= 0 && code < 8 ? texts[code] : "unknown result code";
}

EXPORT const char *ncclGetLastError(ncclComm_t c)
{
    (void)c;
    return last_error;
}

/* ---- Collectives */

#define KERNEL(name, length) "_Z" #length "ncclDevKernel_" name "24ncclDevKernelArgsStorageILm4096EE"

static ncclResult_t put(ncclComm_t c, cudaStream_t stream, size_t count, ncclDataType_t type,
                        const void *a, const void *b, int peer, const char *kernel)
{
    ncclResult_t e = check(c);
    if (e)
        return e;
    if (type < 0 || type >= ncclNumTypes)
        return fail(ncclInvalidArgument, "invalid type");
    if (peer < 0 || peer >= c->size)
        return fail(ncclInvalidArgument, "invalid root or peer");
    if (count > 0 && (!a || !b))
        return fail(ncclInvalidArgument, "a buffer is NULL");
    if (group.depth == 0)
        return start(&(struct work){c, stream, kernel});
    if (group.count == MOST_QUEUED)
        return fail(ncclInvalidUsage, "a group is too large");
    group.queued[group.count++] = (struct work){c, stream, kernel};
    return ncclSuccess;
}

#define OP if (op < 0 || op >= ncclNumOps) return fail(ncclInvalidArgument, "invalid operation")

static ncclResult_t all_reduce(const void *a, void *b, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
    OP;
    return put(c, s, n, t, a, b, 0, KERNEL("AllReduce_Sum_f32_RING_LL", 39));
}

EXPORT ncclResult_t ncclAllReduce(const void *a, void *b, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{ return all_reduce(a, b, n, t, op, c, s); }
EXPORT ncclResult_t pncclAllReduce(const void *a, void *b, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{ return all_reduce(a, b, n, t, op, c, s); }
EXPORT ncclResult_t ncclReduce(const void *a, void *b, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t s)
{ OP; return put(c, s, n, t, a, c && c->rank != root ? a : b, root, KERNEL("Reduce_Sum_f32_RING_LL", 36)); }
EXPORT ncclResult_t ncclReduceScatter(const void *a, void *b, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{ OP; return put(c, s, n, t, a, b, 0, KERNEL("ReduceScatter_Sum_f32_RING_LL", 43)); }
EXPORT ncclResult_t ncclBroadcast(const void *a, void *b, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s)
{ return put(c, s, n, t, a ? a : b, b, root, KERNEL("Broadcast_RING_LL", 31)); }
EXPORT ncclResult_t ncclAllGather(const void *a, void *b, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{ return put(c, s, n, t, a, b, 0, KERNEL("AllGather_RING_LL", 31)); }
EXPORT ncclResult_t ncclSend(const void *a, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{ return put(c, s, n, t, a, a, peer, KERNEL("SendRecv", 22)); }
EXPORT ncclResult_t ncclRecv(void *b, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{ return put(c, s, n, t, b, b, peer, KERNEL("SendRecv", 22)); }

EXPORT ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

/* The outermost one launches: one kernel for each communicator and stream. */
EXPORT ncclResult_t ncclGroupEnd(void)
{
    if (group.depth == 0)
        return fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
    if (--group.depth > 0)
        return ncclSuccess;
    ncclResult_t e = group.failed;
    for (int i = 0; !e && i < group.count; i++) {
        struct work w = group.queued[i];
        int first = 1, alone = 1;
        for (int j = 0; j < group.count; j++)
            if (j != i && group.queued[j].comm == w.comm && group.queued[j].stream == w.stream) {
                first &= j > i;
                alone &= !strcmp(group.queued[j].kernel, w.kernel);
            }
        if (!first)
            continue;
        if (!alone)
            w.kernel = KERNEL("Generic_1", 23);
        e = start(&w);
    }
    group.count = group.failed = 0;
    return e;
}

#ifdef RCCL
/* ---- What only RCCL has, made of its other functions, which a preloaded library may stand before. */

EXPORT ncclResult_t ncclAllReduceWithBias(const void *a, void *b, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s, const void *bias)
{ return bias ? all_reduce(a, b, n, t, op, c, s) : fail(ncclInvalidArgument, "a buffer is NULL"); }

EXPORT ncclResult_t ncclAllToAll(const void *a, void *b, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{
    ncclResult_t e = check(c);
    if (e || (e = ncclGroupStart()))
        return e;
    for (int rank = 0; !e && rank < c->size; rank++)
        e = ncclSend(a, n, t, rank, c, s) || ncclRecv(b, n, t, rank, c, s);
    return e ? e : ncclGroupEnd();
}

EXPORT ncclResult_t ncclAllToAllv(const void *a, const size_t *counts, const size_t *offsets, void *b, const size_t *to_get,
                                  const size_t *places, ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{
    ncclResult_t e = check(c);
    if (e || (e = ncclGroupStart()))
        return e;
    for (int rank = 0; !e && rank < c->size; rank++)
        e = ncclSend((const char *)a + offsets[rank], counts[rank], t, rank, c, s) ||
            ncclRecv((char *)b + places[rank], to_get[rank], t, rank, c, s);
    return e ? e : ncclGroupEnd();
}
#endif
