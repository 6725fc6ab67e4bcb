/* What of rocprofiler-sdk the fake one has, with its prototypes: ids are structs of a number there, which are passed alike. */
#ifndef HETRACE_TEST_ROCPROFILER_H
#define HETRACE_TEST_ROCPROFILER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t handle;
} rocprofiler_context_id_t, rocprofiler_buffer_id_t;
typedef struct {
    size_t size;
    const char *name;
    const uint32_t handle;
} rocprofiler_client_id_t;
typedef struct {
    size_t size;
    int (*initialize)(void (*)(rocprofiler_client_id_t), void *);
    void (*finalize)(void *);
    void *tool_data;
} rocprofiler_tool_configure_result_t;
typedef rocprofiler_tool_configure_result_t *(*rocprofiler_configure_func_t)(uint32_t, const char *, uint32_t,
                                                                             rocprofiler_client_id_t *);
typedef struct {
    uint32_t category, kind;
    void *payload;
} rocprofiler_record_header_t;
typedef void (*rocprofiler_buffer_tracing_cb_t)(rocprofiler_context_id_t, rocprofiler_buffer_id_t,
                                                rocprofiler_record_header_t **, size_t, void *, uint64_t);

enum { SUCCESS = 0, NOT_FOUND = 2, NOT_IMPLEMENTED = 17, LOCKED = 16 };
enum { CATEGORY_TRACING = 1, MEMORY_COPY = 10, KERNEL_DISPATCH = 11 };

int rocprofiler_force_configure(rocprofiler_configure_func_t configure);
int rocprofiler_create_context(rocprofiler_context_id_t *context);
int rocprofiler_create_buffer(rocprofiler_context_id_t context, size_t size, size_t watermark, int policy,
                              rocprofiler_buffer_tracing_cb_t callback, void *data, rocprofiler_buffer_id_t *buffer);
int rocprofiler_configure_buffer_tracing_service(rocprofiler_context_id_t context, int kind, const int32_t *operations,
                                                 size_t count, rocprofiler_buffer_id_t buffer);
int rocprofiler_start_context(rocprofiler_context_id_t context);
int rocprofiler_stop_context(rocprofiler_context_id_t context);
int rocprofiler_flush_buffer(rocprofiler_buffer_id_t buffer);
int rocprofiler_push_external_correlation_id(rocprofiler_context_id_t context, uint64_t thread, uint64_t id);
int rocprofiler_pop_external_correlation_id(rocprofiler_context_id_t context, uint64_t thread, uint64_t *id);
int rocprofiler_get_timestamp(uint64_t *time);

#endif
