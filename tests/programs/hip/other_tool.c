/* Another tool that wants rocprofiler-sdk: it counts kernels, and says so at the end. */
#include "rocprofiler.h"

#include <stdio.h>

#define API __attribute__((visibility("default")))

static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;
static int kernels, strange;

static void delivered(rocprofiler_context_id_t c, rocprofiler_buffer_id_t b, rocprofiler_record_header_t **headers,
                      size_t count, void *data, uint64_t dropped) {
    (void)c, (void)b, (void)data, (void)dropped;
    for (size_t i = 0; i < count; i++) {
        kernels += headers[i]->kind == KERNEL_DISPATCH;
        /* It has pushed no id, so none may be there: the fake has it where the real one has it. */
        strange += ((uint64_t *)headers[i]->payload)[3] != 0;
    }
}

static int initialize(void (*unused)(rocprofiler_client_id_t), void *data) {
    (void)unused, (void)data;
    return rocprofiler_create_context(&context) || rocprofiler_create_buffer(context, 4096, 2048, 2, delivered, NULL, &buffer) ||
           rocprofiler_configure_buffer_tracing_service(context, KERNEL_DISPATCH, NULL, 0, buffer) ||
           rocprofiler_start_context(context);
}

static void finalize(void *data) {
    (void)data;
    fprintf(stderr, "other tool: %d kernels, %d ids of others\n", kernels, strange);
}

API rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority,
                                                               rocprofiler_client_id_t *client) {
    static rocprofiler_tool_configure_result_t tool = {sizeof tool, initialize, finalize, NULL};
    (void)version, (void)runtime, (void)priority;
    client->name = "other";
    return &tool;
}
