/*
 * A tool of OMPT that counts events and prints the counts at the end, as `tool NAME COUNT`. It keeps a number in the words
 * that the runtime has for it, and says if it finds another there.
 *
 * OTHER_TOOL=none: it does not want to be a tool. OTHER_TOOL=older: it knows the older events for devices only.
 * OTHER_TOOL=returns: it does nothing at all, for measurements.
 */
#include <omp-tools.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int parallels, ends, creates, schedules, waits, works, targets, operations, submits, wrong;
static int does_nothing;

static void on_parallel_begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *parallel, unsigned int threads,
                              int flags, const void *code)
{
    (void)task, (void)frame, (void)threads, (void)flags, (void)code;
    if (does_nothing)
        return;
    parallel->value = 0x1234;
    parallels++;
}

static void on_parallel_end(ompt_data_t *parallel, ompt_data_t *task, int flags, const void *code)
{
    (void)task, (void)flags, (void)code;
    if (does_nothing)
        return;
    if (parallel->value != 0x1234)
        wrong++;
    ends++;
}

static void on_create(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *created, int flags, int dependences,
                      const void *code)
{
    (void)task, (void)frame, (void)flags, (void)dependences, (void)code;
    if (does_nothing)
        return;
    created->value = 0x5678;
    creates++;
}

static void on_schedule(ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next)
{
    (void)next;
    if (does_nothing)
        return;
    if (status == ompt_task_complete && prior->value != 0x5678)
        wrong++;
    schedules++;
}

static void on_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel, ompt_data_t *task,
                    const void *code)
{
    (void)kind, (void)parallel, (void)task, (void)code;
    if (!does_nothing && endpoint == ompt_scope_begin)
        waits++;
}

static void on_work(ompt_work_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel, ompt_data_t *task,
                    uint64_t count, const void *code)
{
    (void)kind, (void)parallel, (void)task, (void)count, (void)code;
    if (!does_nothing && endpoint == ompt_scope_begin)
        works++;
}

static void on_target(ompt_target_t kind, ompt_scope_endpoint_t endpoint, int device, ompt_data_t *task, ompt_id_t id,
                      const void *code)
{
    (void)kind, (void)device, (void)task, (void)id, (void)code;
    if (endpoint == ompt_scope_begin)
        targets++;
}

static void on_operation(ompt_id_t target, ompt_id_t id, ompt_target_data_op_t kind, void *from, int from_device, void *to,
                         int to_device, size_t bytes, const void *code)
{
    (void)target, (void)id, (void)kind, (void)from, (void)from_device, (void)to, (void)to_device, (void)bytes, (void)code;
    operations++;
}

static void on_submit(ompt_id_t target, ompt_id_t id, unsigned int teams)
{
    (void)target, (void)id, (void)teams;
    submits++;
}

static void on_target_emi(ompt_target_t kind, ompt_scope_endpoint_t endpoint, int device, ompt_data_t *task,
                          ompt_data_t *target_task, ompt_data_t *target, const void *code)
{
    (void)kind, (void)device, (void)task, (void)target_task, (void)code;
    if (endpoint == ompt_scope_begin) {
        target->value = 0x9abc;
        targets++;
    } else if (target->value != 0x9abc) {
        wrong++;
    }
}

static void on_operation_emi(ompt_scope_endpoint_t endpoint, ompt_data_t *target_task, ompt_data_t *target, ompt_id_t *id,
                             ompt_target_data_op_t kind, void *from, int from_device, void *to, int to_device, size_t bytes,
                             const void *code)
{
    (void)target_task, (void)target, (void)id, (void)kind, (void)from, (void)from_device, (void)to, (void)to_device;
    (void)bytes, (void)code;
    if (endpoint == ompt_scope_begin)
        operations++;
}

static void on_submit_emi(ompt_scope_endpoint_t endpoint, ompt_data_t *target, ompt_id_t *id, unsigned int teams)
{
    (void)target, (void)id, (void)teams;
    if (endpoint == ompt_scope_begin)
        submits++;
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data)
{
    (void)device;
    const char *mode = getenv("OTHER_TOOL");
    int is_older = mode && !strcmp(mode, "older");
    does_nothing = mode && !strcmp(mode, "returns");
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    ompt_get_callback_t get = (ompt_get_callback_t)lookup("ompt_get_callback");
    data->value = 7;
#define SET(event, function) \
    if (set(event, (ompt_callback_t)function) < ompt_set_sometimes) \
    fprintf(stderr, "tool: no %s\n", #event)
    SET(ompt_callback_parallel_begin, on_parallel_begin);
    SET(ompt_callback_parallel_end, on_parallel_end);
    SET(ompt_callback_task_create, on_create);
    SET(ompt_callback_task_schedule, on_schedule);
    SET(ompt_callback_sync_region_wait, on_wait);
    SET(ompt_callback_work, on_work);
    if (does_nothing)
        return 1;
    SET(ompt_callback_target, on_target);
    SET(ompt_callback_target_data_op, on_operation);
    SET(ompt_callback_target_submit, on_submit);
    if (!is_older) {
        SET(ompt_callback_target_emi, on_target_emi);
        SET(ompt_callback_target_data_op_emi, on_operation_emi);
        SET(ompt_callback_target_submit_emi, on_submit_emi);
    }
    // What runtimes return of this differs.
    ompt_callback_t there = NULL;
    get(ompt_callback_work, &there);
    if (there && there != (ompt_callback_t)on_work)
        wrong++;
    return 1;
}

static void finalize(ompt_data_t *data)
{
    if (data->value != 7)
        wrong++;
    if (does_nothing)
        return;
    printf("tool parallel %d\ntool parallel_end %d\ntool create %d\ntool schedule %d\ntool wait %d\ntool work %d\n", parallels,
           ends, creates, schedules, waits, works);
    printf("tool target %d\ntool operation %d\ntool submit %d\ntool wrong %d\n", targets, operations, submits, wrong);
    fflush(stdout);
}

ompt_start_tool_result_t *ompt_start_tool(unsigned int version, const char *runtime)
{
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    const char *mode = getenv("OTHER_TOOL");
    (void)version, (void)runtime;
    return mode && !strcmp(mode, "none") ? NULL : &result;
}
