/* Stands for Intel's libccl.so.2: communicators that know their size and rank, and operations that check their arguments. No
 * data is moved, and nobody waits for others. All other functions of the model are made by tests/src/fake_oneccl.rs. */
#include "oneccl.h"

#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

struct fake_comm {
    int ranks, rank;
};

static int depth;

API onecclResult_t onecclGetVersion(int *version) {
    if (!version)
        return invalid_argument;
    *version = 20220200;
    return success;
}

API onecclResult_t onecclGetUniqueId(onecclUniqueId *id) {
    memset(id, 0, sizeof *id);
    strcpy(id->data, "a fake of oneCCL");
    return success;
}

API onecclResult_t onecclCommInitRank(onecclComm_t *comm, size_t ranks, onecclUniqueId id, int rank) {
    if (strcmp(id.data, "a fake of oneCCL") != 0 || rank < 0 || (size_t)rank >= ranks)
        return invalid_argument;
    *comm = malloc(sizeof **comm);
    **comm = (struct fake_comm){(int)ranks, rank};
    return success;
}

API onecclResult_t onecclCommSplit(onecclComm_t comm, int color, int key, onecclComm_t *made, void *config) {
    (void)color, (void)key, (void)config;
    *made = malloc(sizeof **made);
    **made = *comm;
    return success;
}

API onecclResult_t onecclCommCount(onecclComm_t comm, int *size) {
    *size = comm->ranks;
    return success;
}

API onecclResult_t onecclCommUserRank(onecclComm_t comm, int *rank) {
    *rank = comm->rank;
    return success;
}

API onecclResult_t onecclCommDestroy(onecclComm_t comm) {
    free(comm);
    return comm ? success : invalid_argument;
}

API const char *onecclGetErrorString(onecclResult_t result) {
    switch (result) {
    case invalid_argument: return "invalid argument";
    case invalid_usage: return "invalid usage";
    default: return "unknown result code";
    }
}

static onecclResult_t check(const void *a, const void *b, int type, onecclComm_t comm) {
    return !comm || !a || !b || type < 0 || type > type_bfloat16 ? invalid_argument : success;
}

API onecclResult_t onecclAllReduce(void *from, void *to, size_t count, int type, int operation, onecclComm_t comm, void *queue) {
    (void)count, (void)operation, (void)queue;
    return check(from, to, type, comm);
}

API onecclResult_t onecclAllGather(const void *from, void *to, size_t count, int type, onecclComm_t comm, void *queue) {
    (void)count, (void)queue;
    return check(from, to, type, comm);
}

API onecclResult_t onecclBroadcast(const void *from, void *to, size_t count, int type, int root, onecclComm_t comm, void *queue) {
    (void)count, (void)queue;
    return root < 0 || (comm && root >= comm->ranks) ? invalid_argument : check(from, to, type, comm);
}

API onecclResult_t onecclGroupStart(void) {
    depth++;
    return success;
}

API onecclResult_t onecclGroupEnd(void) {
    return --depth < 0 ? (depth = 0, invalid_usage) : success;
}
