/* What AMD's RCCL exports beside NCCL's functions, from ROCm 5.3 on, in NCCL's types: a stream is a pointer in both. Written
 * by hand from RCCL's documentation. */
#pragma once
#include <nccl.h>

ncclResult_t ncclCommInitRankMulti(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, int virtualId);
ncclResult_t pncclCommInitRankMulti(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, int virtualId);

ncclResult_t ncclAllReduceWithBias(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                                   ncclComm_t comm, cudaStream_t stream, const void *acc);
ncclResult_t pncclAllReduceWithBias(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                                    ncclComm_t comm, cudaStream_t stream, const void *acc);

ncclResult_t ncclAllToAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t pncclAllToAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream);

/* Counts and offsets are arrays of as many elements as the communicator has ranks. */
ncclResult_t ncclAllToAllv(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls, void *recvbuff,
                           const size_t *recvcounts, const size_t *rdispls, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t pncclAllToAllv(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls, void *recvbuff,
                            const size_t *recvcounts, const size_t *rdispls, ncclDataType_t datatype, ncclComm_t comm,
                            cudaStream_t stream);
ncclResult_t ncclAlltoAllv(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls, void *recvbuff,
                           const size_t *recvcounts, const size_t *rdispls, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t pncclAlltoAllv(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls, void *recvbuff,
                            const size_t *recvcounts, const size_t *rdispls, ncclDataType_t datatype, ncclComm_t comm,
                            cudaStream_t stream);

/* Algorithms from files. */
typedef int mscclAlgoHandle_t;
ncclResult_t mscclLoadAlgo(const char *mscclAlgoFilePath, mscclAlgoHandle_t *mscclAlgoHandle, int rank);
ncclResult_t pmscclLoadAlgo(const char *mscclAlgoFilePath, mscclAlgoHandle_t *mscclAlgoHandle, int rank);
ncclResult_t mscclRunAlgo(const void *sendBuff, const size_t *sendCounts, const size_t *sDisPls, void *recvBuff,
                          const size_t *recvCounts, const size_t *rDisPls, size_t count, ncclDataType_t dataType, int root,
                          int peer, ncclRedOp_t op, mscclAlgoHandle_t mscclAlgoHandle, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pmscclRunAlgo(const void *sendBuff, const size_t *sendCounts, const size_t *sDisPls, void *recvBuff,
                           const size_t *recvCounts, const size_t *rDisPls, size_t count, ncclDataType_t dataType, int root,
                           int peer, ncclRedOp_t op, mscclAlgoHandle_t mscclAlgoHandle, ncclComm_t comm, cudaStream_t stream);
ncclResult_t mscclUnloadAlgo(mscclAlgoHandle_t mscclAlgoHandle);
ncclResult_t pmscclUnloadAlgo(mscclAlgoHandle_t mscclAlgoHandle);
