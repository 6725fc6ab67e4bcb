/*
 * Functions of ROCTX that the header of roctracer's libroctx64 does not declare: those that librocprofiler-sdk-roctx
 * has besides, and what libroctx64 has for roctracer itself. Pointers to structs of other APIs, through which objects
 * are only named, are handles here.
 */
#pragma once
#include <stdint.h>
#include <roctracer/roctx.h>

typedef uint64_t roctx_thread_id_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct hsa_agent_s {
    uint64_t handle;
} hsa_agent_t;

/*
 * What functions of rocprofiler-sdk return as an `int`: a tool that does not do what it is asked returns any other
 * number than 0.
 */
typedef enum {
    ROCTX_FAILED = -1,
    ROCTX_SUCCESS = 0
} roctx_result_t;

/* What a tool is asked for; `thread` 0 are all threads of the process. */
roctx_result_t roctxProfilerPause(roctx_thread_id_t thread);
roctx_result_t roctxProfilerResume(roctx_thread_id_t thread);

/* Names of the calling thread, and of objects of other APIs. */
roctx_result_t roctxNameOsThread(const char *name);
roctx_result_t roctxNameHsaAgent(const char *name, const hsa_agent_t *agent);
roctx_result_t roctxNameHipDevice(const char *name, int device_id);
roctx_result_t roctxNameHipStream(const char *name, hipStream_t stream);

roctx_result_t roctxGetThreadId(roctx_thread_id_t *thread);

/* By this roctracer has itself called for each mark and range; no program calls it. */
void roctxRegisterTracerCallback(int (*function)(uint32_t domain, uint32_t operation, void *data));
