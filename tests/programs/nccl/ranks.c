/* Ranks of NCCL, or with RCCL of AMD's, each in a process of its own; the first argument says what they do. The
 * parent never touches the driver. Each rank says which communicators it had:
 * `rank R pid P comm HANDLE …`.
 */
#define _GNU_SOURCE
#include "fake_nccl.h"
#ifdef RCCL
#include "../hip/hip.h"
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        int ok_ = (call);                                                                          \
        if (ok_) {                                                                                 \
            fprintf(stderr, "%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, ok_, ncclGetLastError(NULL)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static cudaStream_t stream;
static float *a, *b;

#ifdef RCCL
static void device(void)
{
    OK(hipInit(0));
    OK(hipStreamCreateWithFlags((hipStream_t *)&stream, hipStreamNonBlocking));
    OK(hipMalloc((void **)&a, 1 << 20));
    OK(hipMalloc((void **)&b, 1 << 20));
}

static int synchronize(void) { return hipStreamSynchronize((hipStream_t)stream); }

/* What only RCCL has. */
static void own(int rank, ncclUniqueId id)
{
    ncclComm_t world;
    size_t counts[2] = {10, 20}, offsets[2] = {0, 40};
    int algorithm = 0;
    device();
    OK(ncclCommInitRank(&world, 2, id, rank));
    OK(ncclAllToAll(a, b, 300, ncclFloat32, world, stream));
    OK(ncclAllToAllv(a, counts, offsets, b, counts, offsets, 11 /* ncclFp8E5M2 */, world, stream));
    OK(ncclAllReduceWithBias(a, b, 50, ncclFloat32, ncclSum, world, stream, a));
    CHECK(ncclAllReduceWithBias(a, b, 50, ncclFloat32, ncclSum, world, stream, NULL) == ncclInvalidArgument);
    OK(mscclLoadAlgo("all-to-all.xml", &algorithm, rank));
    OK(mscclUnloadAlgo(algorithm));
    OK(synchronize());
    printf("rank %d pid %d comm %p\n", rank, getpid(), (void *)world);
    OK(ncclCommDestroy(world));
}
#else
static void device(void)
{
    void *context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemAlloc_v2((uint64_t *)&a, 1 << 20));
    OK(cuMemAlloc_v2((uint64_t *)&b, 1 << 20));
}

static int synchronize(void) { return cuStreamSynchronize(stream); }

static void own(int rank, ncclUniqueId id)
{
    (void)rank, (void)id;
    exit(1);
}
#endif

static void work(int rank, ncclUniqueId id)
{
    ncclComm_t world, half, none;
    int value;
    device();
    OK(ncclCommInitRank(&world, 2, id, rank));
    OK(ncclCommCount(world, &value));
    CHECK(value == 2);
    OK(ncclCommUserRank(world, &value));
    CHECK(value == rank);
    OK(ncclAllReduce(a, b, 1000, ncclFloat32, ncclSum, world, stream));
    OK(ncclAllReduce(a, b, 3, ncclFloat64, ncclMax, world, stream));
    OK(ncclAllGather(a, b, 500, ncclInt32, world, stream));
    OK(ncclBroadcast(a, b, 64, ncclInt8, 1, world, stream));
    OK(ncclReduceScatter(a, b, 128, ncclFloat32, ncclAvg, world, stream));
    OK(ncclGroupStart());
    OK(ncclSend(a, 256, ncclFloat32, 1 - rank, world, stream));
    OK(ncclGroupStart());
    OK(ncclRecv(b, 256, ncclFloat32, 1 - rank, world, stream));
    OK(ncclGroupEnd());
    OK(ncclGroupEnd());
    /* The ranks change places. */
    OK(ncclCommSplit(world, 7, -rank, &half, NULL));
    OK(ncclCommUserRank(half, &value));
    CHECK(value == 1 - rank);
    OK(ncclReduce(a, b, 32, ncclFloat32, ncclSum, 0, half, stream));
    OK(ncclCommSplit(world, rank ? 1 : -1, 0, &none, NULL));
    CHECK(!none == !rank);
    OK(synchronize());
    printf("rank %d pid %d comm %p %p %p\n", rank, getpid(), (void *)world, (void *)half, (void *)none);
    if (none)
        OK(ncclCommDestroy(none));
    OK(ncclCommDestroy(half));
    OK(ncclCommFinalize(world));
    OK(ncclCommDestroy(world));
}

/* One of two worlds of two ranks each, that know nothing of each other. */
static void worlds(int rank, ncclUniqueId id)
{
    ncclComm_t world;
    device();
    OK(ncclCommInitRank(&world, 2, id, rank));
    OK(ncclAllReduce(a, b, 1000, ncclFloat32, ncclSum, world, stream));
    OK(synchronize());
    printf("rank %d pid %d comm %p\n", rank, getpid(), (void *)world);
    OK(ncclCommDestroy(world));
}

/* What is refused, and what NCCL says of it. */
static void errors(int rank, ncclUniqueId id)
{
    ncclComm_t world;
    device();
    CHECK(ncclCommInitRank(&world, 1, id, 5) == ncclInvalidArgument);
    OK(ncclCommInitRank(&world, 1, id, rank));
    CHECK(ncclAllReduce(a, b, 10, 99, ncclSum, world, stream) == ncclInvalidArgument);
    CHECK(ncclAllReduce(NULL, b, 10, ncclInt8, ncclSum, world, stream) == ncclInvalidArgument);
    CHECK(!strcmp(ncclGetLastError(world), "a buffer is NULL"));
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    OK(ncclGroupStart());
    CHECK(ncclSend(a, 1, ncclInt8, 3, world, stream) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    /* What a profiling library calls. */
    OK(pncclAllReduce(a, b, 0, ncclInt8, ncclSum, world, stream));
    OK(ncclCommAbort(world));
    CHECK(ncclAllReduce(a, b, 10, ncclInt8, ncclSum, world, stream) == ncclInvalidUsage);
    CHECK(!strcmp(ncclGetErrorString(ncclInvalidUsage), "invalid usage"));
}

/* Does not wait while the communicator is made. */
static void nonblocking(int rank, ncclUniqueId id)
{
    ncclComm_t world;
    ncclConfig_t config = {.size = sizeof config, .magic = 0xcafebeef, .version = 22703, .blocking = 0,
                           .netName = "Socket", .commName = "everyone"};
    ncclResult_t state = ncclInProgress;
    long polls = 0;
    device();
    ncclResult_t first = ncclCommInitRankConfig(&world, 2, id, rank, &config);
    CHECK(first == ncclInProgress);
    while (state == ncclInProgress) {
        OK(ncclCommGetAsyncError(world, &state));
        polls++;
    }
    OK(state);
    OK(ncclAllReduce(a, b, 10, ncclFloat32, ncclSum, world, stream));
    OK(synchronize());
    printf("rank %d pid %d comm %p polls %ld\n", rank, getpid(), (void *)world, polls);
    OK(ncclCommDestroy(world));
}

/* One process with a communicator for each of two devices. */
static void one_process(void)
{
    ncclComm_t comms[2];
    int devices[2] = {1, 0}, value;
    device();
    OK(ncclCommInitAll(comms, 2, devices));
    OK(ncclCommCuDevice(comms[0], &value));
    CHECK(value == 1);
    OK(ncclGroupStart());
    for (int i = 0; i < 2; i++) {
        OK(ncclAllReduce(a, b, 100, ncclFloat32, ncclSum, comms[i], stream));
        OK(ncclAllGather(a, b, 50, ncclFloat32, comms[i], stream));
    }
    OK(ncclGroupEnd());
    OK(synchronize());
    printf("rank 0 pid %d comm %p %p\n", getpid(), (void *)comms[0], (void *)comms[1]);
    for (int i = 0; i < 2; i++)
        OK(ncclCommDestroy(comms[i]));
}

/* Whether a process sleeps, as the kernel says. */
static int sleeps(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    CHECK(f && fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    char *end = strrchr(text, ')');
    CHECK(end && end[2] != 'Z');
    return end[2] == 'S';
}

/* Rank 1 never comes: to the collective ("late"), or at all ("absent"). Rank 0 is killed
 * while it waits. */
static void waits(int rank, int absent, ncclUniqueId id, int words)
{
    ncclComm_t world;
    /* A collective lasts as long as a rank is missing. */
    setenv("FAKE_CUDA_KERNEL_NS", "1000000000000000", 1);
    device();
    if (absent)
        CHECK(write(words, "x", 1) == 1);
    OK(ncclCommInitRank(&world, 2, id, rank));
    printf("rank %d pid %d comm %p\n", rank, getpid(), (void *)world);
    fflush(stdout);
    if (rank == 0)
        OK(ncclAllReduce(a, b, 4096, ncclFloat32, ncclSum, world, stream));
    CHECK(write(words, "x", 1) == 1);
    if (rank == 0)
        OK(synchronize());
    for (;;)
        pause();
}

static void hang(int absent, ncclUniqueId id)
{
    int words[2], ranks = absent ? 1 : 2;
    pid_t child[2];
    char word = 0;
    CHECK(!pipe(words));
    for (int rank = 0; rank < ranks; rank++)
        if ((child[rank] = fork()) == 0)
            waits(rank, absent, id, words[1]);
    for (int rank = 0; rank < ranks; rank++)
        CHECK(read(words[0], &word, 1) == 1);
    /* After its word each does nothing but enter the call that it never leaves. */
    for (int rank = 0; rank < ranks; rank++) {
        for (int seen = 0; seen < 20; usleep(10000))
            seen = sleeps(child[rank]) ? seen + 1 : 0;
        kill(child[rank], SIGKILL);
        int status = 0;
        CHECK(waitpid(child[rank], &status, 0) == child[rank] && WIFSIGNALED(status));
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    ncclUniqueId id;
    int version, failed = 0;
    OK(ncclGetVersion(&version));
    OK(ncclGetUniqueId(&id));
    if (!strcmp(what, "late") || !strcmp(what, "absent")) {
        hang(what[0] == 'a', id);
    } else if (!strcmp(what, "one-process")) {
        one_process();
    } else if (!strcmp(what, "errors")) {
        errors(0, id);
    } else {
        int two = !strcmp(what, "worlds");
        void (*rank_does)(int, ncclUniqueId) = two                            ? worlds
                                               : !strcmp(what, "nonblocking") ? nonblocking
                                               : !strcmp(what, "own")         ? own
                                                                              : work;
        ncclUniqueId ids[2] = {id, id};
        if (two)
            OK(ncclGetUniqueId(&ids[1]));
        for (int i = 0; i < 2 + 2 * two; i++)
            if (fork() == 0) {
                rank_does(i % 2, ids[i / 2]);
                exit(0);
            }
        for (int i = 0; i < 2 + 2 * two; i++) {
            int status = 1;
            failed |= wait(&status) < 0 || status;
        }
    }
    unlink(id.internal + 32);
    printf("%s done, NCCL %d\n", what, version);
    return failed;
}
