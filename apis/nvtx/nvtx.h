/*
 * NVTX as hetrace records it.
 *
 * NVTX hands a tool structs of attributes with unions in them. What is recorded
 * is laid flat here: the functions have the names that programs call, and one
 * parameter for each thing that can be recorded. The endings A and W are left out,
 * for texts are recorded in UTF-8 whatever they came in.
 *
 * In all functions with attributes:
 *   category      0, or a number that nvtxNameCategory or nvtxDomainNameCategory names
 *   color         ARGB; 0 if there is none
 *   payload_type  what `payload` is
 *   payload       its bits, of a 32-bit type in the lower half; 0 if there is none
 *   message       the text, empty if there is none or a registered one
 *   registered    what nvtxDomainRegisterString returned for the text; NULL if
 *                 the text is `message`
 *   domain        what nvtxDomainCreate returned; NULL is the default domain, which
 *                 functions without this parameter belong to
 */
#ifndef HETRACE_NVTX_H
#define HETRACE_NVTX_H

#include <stdint.h>

typedef struct nvtxDomain_st *nvtxDomainHandle_t;
typedef struct nvtxString_st *nvtxStringHandle_t;
typedef struct nvtxResource_st *nvtxResourceHandle_t;
typedef struct nvtxSyncUser_st *nvtxSyncUser_t;
typedef uint64_t nvtxRangeId_t;
typedef uint32_t nvtxColor_t;
/* An address, a handle or a number of the system. */
typedef uint64_t nvtxIdentifier_t;

/* Objects of other APIs, which get names. */
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct cl_device_st *cl_device_id;
typedef struct cl_context_st *cl_context;
typedef struct cl_command_queue_st *cl_command_queue;
typedef struct cl_mem_st *cl_mem;
typedef struct cl_sampler_st *cl_sampler;
typedef struct cl_program_st *cl_program;
typedef struct cl_event_st *cl_event;

typedef enum {
    NVTX_PAYLOAD_UNKNOWN = 0,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
    NVTX_PAYLOAD_TYPE_INT64 = 2,
    NVTX_PAYLOAD_TYPE_DOUBLE = 3,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4,
    NVTX_PAYLOAD_TYPE_INT32 = 5,
    NVTX_PAYLOAD_TYPE_FLOAT = 6,
    /* The address of data that a schema describes; not followed. */
    NVTX_PAYLOAD_TYPE_EXT = 0xDFBD0009
} nvtxPayloadType_t;

typedef enum {
    NVTX_RESOURCE_TYPE_UNKNOWN = 0,
    NVTX_RESOURCE_TYPE_GENERIC_POINTER = 0x10001,
    NVTX_RESOURCE_TYPE_GENERIC_HANDLE = 0x10002,
    NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE = 0x10003,
    NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX = 0x10004,
    NVTX_RESOURCE_TYPE_SYNC_LINUX_MUTEX = 0x20001,
    NVTX_RESOURCE_TYPE_SYNC_LINUX_FUTEX = 0x20002,
    NVTX_RESOURCE_TYPE_SYNC_LINUX_SEMAPHORE = 0x20003,
    NVTX_RESOURCE_TYPE_SYNC_LINUX_COMPLETION = 0x20004,
    NVTX_RESOURCE_TYPE_SYNC_LINUX_SPINLOCK = 0x20005,
    NVTX_RESOURCE_TYPE_SYNC_LINUX_SEQLOCK = 0x20006,
    NVTX_RESOURCE_TYPE_SYNC_LINUX_RCU = 0x20007,
    NVTX_RESOURCE_TYPE_SYNC_PTHREAD_MUTEX = 0x30001,
    NVTX_RESOURCE_TYPE_SYNC_PTHREAD_CONDITION = 0x30002,
    NVTX_RESOURCE_TYPE_SYNC_PTHREAD_RWLOCK = 0x30003,
    NVTX_RESOURCE_TYPE_SYNC_PTHREAD_BARRIER = 0x30004,
    NVTX_RESOURCE_TYPE_SYNC_PTHREAD_SPINLOCK = 0x30005,
    NVTX_RESOURCE_TYPE_SYNC_PTHREAD_ONCE = 0x30006,
    NVTX_RESOURCE_TYPE_CUDA_DEVICE = 0x40001,
    NVTX_RESOURCE_TYPE_CUDA_CONTEXT = 0x40002,
    NVTX_RESOURCE_TYPE_CUDA_STREAM = 0x40003,
    NVTX_RESOURCE_TYPE_CUDA_EVENT = 0x40004,
    NVTX_RESOURCE_TYPE_CUDART_DEVICE = 0x50000,
    NVTX_RESOURCE_TYPE_CUDART_STREAM = 0x50001,
    NVTX_RESOURCE_TYPE_CUDART_EVENT = 0x50002,
    NVTX_RESOURCE_TYPE_OPENCL_DEVICE = 0x60001,
    NVTX_RESOURCE_TYPE_OPENCL_CONTEXT = 0x60002,
    NVTX_RESOURCE_TYPE_OPENCL_COMMANDQUEUE = 0x60003,
    NVTX_RESOURCE_TYPE_OPENCL_MEMOBJECT = 0x60004,
    NVTX_RESOURCE_TYPE_OPENCL_SAMPLER = 0x60005,
    NVTX_RESOURCE_TYPE_OPENCL_PROGRAM = 0x60006,
    NVTX_RESOURCE_TYPE_OPENCL_EVENT = 0x60007
} nvtxResourceType_t;

/* What push and pop answer instead of a level. */
typedef enum {
    NVTX_NO_PUSH_POP_TRACKING = -2
} nvtxError_t;

/* Marks and ranges of the default domain. */
void nvtxInitialize(const void *reserved);
void nvtxMarkEx(uint32_t category, nvtxColor_t color, nvtxPayloadType_t payload_type, uint64_t payload, const char *message, nvtxStringHandle_t registered);
void nvtxMark(const char *message);
nvtxRangeId_t nvtxRangeStartEx(uint32_t category, nvtxColor_t color, nvtxPayloadType_t payload_type, uint64_t payload, const char *message, nvtxStringHandle_t registered);
nvtxRangeId_t nvtxRangeStart(const char *message);
void nvtxRangeEnd(nvtxRangeId_t id);
int nvtxRangePushEx(uint32_t category, nvtxColor_t color, nvtxPayloadType_t payload_type, uint64_t payload, const char *message, nvtxStringHandle_t registered);
int nvtxRangePush(const char *message);
int nvtxRangePop(void);
void nvtxNameCategory(uint32_t category, const char *name);
void nvtxNameOsThread(uint32_t thread_id, const char *name);

/* The same in a domain. */
nvtxDomainHandle_t nvtxDomainCreate(const char *name);
void nvtxDomainDestroy(nvtxDomainHandle_t domain);
nvtxStringHandle_t nvtxDomainRegisterString(nvtxDomainHandle_t domain, const char *string);
void nvtxDomainMarkEx(nvtxDomainHandle_t domain, uint32_t category, nvtxColor_t color, nvtxPayloadType_t payload_type, uint64_t payload, const char *message, nvtxStringHandle_t registered);
nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain, uint32_t category, nvtxColor_t color, nvtxPayloadType_t payload_type, uint64_t payload, const char *message, nvtxStringHandle_t registered);
void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t id);
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, uint32_t category, nvtxColor_t color, nvtxPayloadType_t payload_type, uint64_t payload, const char *message, nvtxStringHandle_t registered);
int nvtxDomainRangePop(nvtxDomainHandle_t domain);
void nvtxDomainNameCategory(nvtxDomainHandle_t domain, uint32_t category, const char *name);
nvtxResourceHandle_t nvtxDomainResourceCreate(nvtxDomainHandle_t domain, nvtxResourceType_t identifier_type, nvtxIdentifier_t identifier, const char *message, nvtxStringHandle_t registered);
void nvtxDomainResourceDestroy(nvtxResourceHandle_t resource);

/*
 * The extension for payloads whose parts a schema describes. Of several payloads in one call
 * the first is recorded, and `count` says how many there are. `entries` has what the attributes
 * describe one by one: a type, a name and an offset, or a name and a value.
 */
uint64_t nvtxPayloadSchemaRegister(nvtxDomainHandle_t domain, const char *name, uint64_t type, uint64_t flags, const char *entries, uint64_t num_entries, uint64_t static_size, uint64_t schema_id);
uint64_t nvtxPayloadEnumRegister(nvtxDomainHandle_t domain, const char *name, const char *entries, uint64_t num_entries, uint64_t size_of_enum, uint64_t schema_id);
void nvtxMarkPayload(nvtxDomainHandle_t domain, uint64_t schema_id, const void *payload, uint64_t size, uint64_t count);
int nvtxRangePushPayload(nvtxDomainHandle_t domain, uint64_t schema_id, const void *payload, uint64_t size, uint64_t count);
int nvtxRangePopPayload(nvtxDomainHandle_t domain, uint64_t schema_id, const void *payload, uint64_t size, uint64_t count);
nvtxRangeId_t nvtxRangeStartPayload(nvtxDomainHandle_t domain, uint64_t schema_id, const void *payload, uint64_t size, uint64_t count);
void nvtxRangeEndPayload(nvtxDomainHandle_t domain, nvtxRangeId_t id, uint64_t schema_id, const void *payload, uint64_t size, uint64_t count);

/* Names of objects of other APIs. */
void nvtxNameCuDevice(CUdevice device, const char *name);
void nvtxNameCuContext(CUcontext context, const char *name);
void nvtxNameCuStream(CUstream stream, const char *name);
void nvtxNameCuEvent(CUevent event, const char *name);
void nvtxNameCudaDevice(int device, const char *name);
void nvtxNameCudaStream(cudaStream_t stream, const char *name);
void nvtxNameCudaEvent(cudaEvent_t event, const char *name);
void nvtxNameClDevice(cl_device_id device, const char *name);
void nvtxNameClContext(cl_context context, const char *name);
void nvtxNameClCommandQueue(cl_command_queue command_queue, const char *name);
void nvtxNameClMemObject(cl_mem memobj, const char *name);
void nvtxNameClSampler(cl_sampler sampler, const char *name);
void nvtxNameClProgram(cl_program program, const char *name);
void nvtxNameClEvent(cl_event evnt, const char *name);

/* Locks that a program makes of atomics. */
nvtxSyncUser_t nvtxDomainSyncUserCreate(nvtxDomainHandle_t domain, const char *message, nvtxStringHandle_t registered);
void nvtxDomainSyncUserDestroy(nvtxSyncUser_t handle);
void nvtxDomainSyncUserAcquireStart(nvtxSyncUser_t handle);
void nvtxDomainSyncUserAcquireFailed(nvtxSyncUser_t handle);
void nvtxDomainSyncUserAcquireSuccess(nvtxSyncUser_t handle);
void nvtxDomainSyncUserReleasing(nvtxSyncUser_t handle);

#endif
