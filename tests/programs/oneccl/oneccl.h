/* What the fake of oneCCL and its program need of its C interface. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int onecclResult_t;
enum { success = 0, invalid_argument = 4, invalid_usage = 5, in_progress = 6 };
enum { type_int32 = 2, type_float = 7, type_bfloat16 = 9 };
enum { sum = 0, max = 2 };
typedef struct fake_comm *onecclComm_t;
typedef struct {
    char data[4096];
} onecclUniqueId;

onecclResult_t onecclGetVersion(int *version);
onecclResult_t onecclGetUniqueId(onecclUniqueId *id);
onecclResult_t onecclSetDevice(uint32_t index);
onecclResult_t onecclCommInitRank(onecclComm_t *comm, size_t ranks, onecclUniqueId id, int rank);
onecclResult_t onecclCommSplit(onecclComm_t comm, int color, int key, onecclComm_t *made, void *config);
onecclResult_t onecclCommCount(onecclComm_t comm, int *size);
onecclResult_t onecclCommUserRank(onecclComm_t comm, int *rank);
onecclResult_t onecclCommDestroy(onecclComm_t comm);
const char *onecclGetErrorString(onecclResult_t result);
onecclResult_t onecclAllReduce(void *from, void *to, size_t count, int type, int operation, onecclComm_t comm, void *queue);
onecclResult_t onecclAllGather(const void *from, void *to, size_t count, int type, onecclComm_t comm, void *queue);
onecclResult_t onecclBroadcast(const void *from, void *to, size_t count, int type, int root, onecclComm_t comm, void *queue);
onecclResult_t onecclAllToAllV(const void *from, const size_t *counts, void *to, const size_t *to_get, int type,
                               onecclComm_t comm, void *queue);
onecclResult_t onecclSend(const void *from, size_t count, int type, int peer, onecclComm_t comm, void *queue);
onecclResult_t onecclRecv(void *to, size_t count, int type, int peer, onecclComm_t comm, void *queue);
onecclResult_t onecclGroupStart(void);
onecclResult_t onecclGroupEnd(void);
