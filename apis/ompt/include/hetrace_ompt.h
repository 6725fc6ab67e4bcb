/*
 * What an OpenMP runtime reports by the callbacks of OMPT, as functions.
 *
 * A callback with an endpoint is one function where what it encloses is the runtime's own work: the call lasts from
 * begin to end. Where it encloses code of the program, it is a range, which one function begins and another ends.
 * A callback with a kind is one function for each kind, since these do not mean the same; what a newer runtime may
 * report has one more, with the kind as a number. A parameter that is known at the end only is a pointer.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <omp-tools.h>

/* Where a construct is in the program: what is returned to behind the call of the runtime. */
typedef uint64_t ompt_address;
/* Known by the addresses of the words that a runtime has for its tool. */
typedef struct hetrace_ompt_parallel *ompt_parallel;
typedef struct hetrace_ompt_task *ompt_task;
typedef int ompt_device_num;

/* As ompt_dependence_t, whose first member is a union. */
typedef struct ompt_task_dependency {
    ompt_address variable;
    ompt_dependence_type_t dependence_type;
} ompt_task_dependency;

/* The tool itself: which runtime has started it, and what that says of each callback. */
void ompt_tool_start(uint32_t omp_version, const char *runtime_version, const char *next_tool);
void ompt_tool_callback(ompt_callbacks_t event, ompt_set_result_t answer);
/* A library, or the program, with code that constructs are in: an address less `base` is that in its file. */
void ompt_code(ompt_address start, ompt_address end, ompt_address base, const char *path);

void ompt_thread_begin(ompt_thread_t thread_type);
void ompt_thread_end(void);

void ompt_parallel_begin(ompt_parallel parallel, ompt_task encountering_task, uint32_t requested_parallelism,
                         ompt_parallel_flag_t flags, ompt_address codeptr_ra);
void ompt_parallel_end(ompt_parallel parallel, ompt_task encountering_task, ompt_parallel_flag_t flags,
                       ompt_address codeptr_ra);

#define HETRACE_TASK(kind)                                                                             \
    void ompt_##kind##_begin(ompt_parallel parallel, ompt_task task, uint32_t actual_parallelism,      \
                             uint32_t index, ompt_task_flag_t flags);                                  \
    void ompt_##kind##_end(ompt_parallel parallel, ompt_task task, uint32_t actual_parallelism, uint32_t index, \
                           ompt_task_flag_t flags);
HETRACE_TASK(implicit_task)
HETRACE_TASK(initial_task)

#define HETRACE_WORK(kind)                                                                             \
    void ompt_##kind##_begin(ompt_parallel parallel, ompt_task task, uint64_t count, ompt_address codeptr_ra); \
    void ompt_##kind##_end(ompt_parallel parallel, ompt_task task, uint64_t count, ompt_address codeptr_ra);
HETRACE_WORK(loop)
HETRACE_WORK(loop_static)
HETRACE_WORK(loop_dynamic)
HETRACE_WORK(loop_guided)
HETRACE_WORK(loop_other)
HETRACE_WORK(sections)
HETRACE_WORK(single_executor)
HETRACE_WORK(single_other)
HETRACE_WORK(workshare)
HETRACE_WORK(distribute)
HETRACE_WORK(taskloop)
HETRACE_WORK(scope_region)
void ompt_work_begin(ompt_work_t work_type, ompt_parallel parallel, ompt_task task, uint64_t count,
                     ompt_address codeptr_ra);
void ompt_work_end(ompt_work_t work_type, ompt_parallel parallel, ompt_task task, uint64_t count,
                   ompt_address codeptr_ra);

void ompt_masked_begin(ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);
void ompt_masked_end(ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);
/* `instance` is what `kind` makes of it: a number, an address, or that of a chunk, whose two numbers follow. */
void ompt_dispatch(ompt_parallel parallel, ompt_task task, ompt_dispatch_t kind, ompt_address instance, uint64_t start,
                   uint64_t iterations);

void ompt_task_create(ompt_task new_task, ompt_task encountering_task, ompt_task_flag_t flags, int has_dependences,
                      ompt_address codeptr_ra);
/* A thread begins or resumes an explicit task, and leaves it again. */
void ompt_task_begin(ompt_task task, ompt_task prior_task, ompt_task_status_t prior_status);
void ompt_task_end(ompt_task task, ompt_task_status_t status, ompt_task next_task);
/* Any other change of a task's state. */
void ompt_task_schedule(ompt_task prior_task, ompt_task_status_t prior_status, ompt_task next_task);
void ompt_dependences(ompt_task task, const ompt_task_dependency *deps, uint32_t ndeps);
void ompt_task_dependence(ompt_task src_task, ompt_task sink_task);

#define HETRACE_WAIT(kind) void ompt_wait_##kind(ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);
HETRACE_WAIT(barrier)
HETRACE_WAIT(barrier_implicit)
HETRACE_WAIT(barrier_explicit)
HETRACE_WAIT(barrier_implementation)
HETRACE_WAIT(barrier_implicit_workshare)
HETRACE_WAIT(barrier_implicit_parallel)
HETRACE_WAIT(barrier_teams)
HETRACE_WAIT(taskwait)
HETRACE_WAIT(taskgroup)
HETRACE_WAIT(reduction)
void ompt_wait(ompt_sync_region_t kind, ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);
void ompt_sync_region_begin(ompt_sync_region_t kind, ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);
void ompt_sync_region_end(ompt_sync_region_t kind, ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);
void ompt_reduction_begin(ompt_sync_region_t kind, ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);
void ompt_reduction_end(ompt_sync_region_t kind, ompt_parallel parallel, ompt_task task, ompt_address codeptr_ra);

/* From where a thread wants it until it has it. A test may end without it, so it and its success are two moments. */
#define HETRACE_ACQUIRE(kind)                                                                          \
    void ompt_acquire_##kind(uint32_t hint, kmp_mutex_impl_t impl, ompt_wait_id_t wait_id, ompt_address codeptr_ra);
HETRACE_ACQUIRE(lock)
HETRACE_ACQUIRE(nest_lock)
HETRACE_ACQUIRE(critical)
HETRACE_ACQUIRE(atomic)
HETRACE_ACQUIRE(ordered)
void ompt_acquire(ompt_mutex_t kind, uint32_t hint, kmp_mutex_impl_t impl, ompt_wait_id_t wait_id,
                  ompt_address codeptr_ra);
void ompt_test_lock(ompt_mutex_t kind, uint32_t hint, kmp_mutex_impl_t impl, ompt_wait_id_t wait_id,
                    ompt_address codeptr_ra);
void ompt_test_lock_acquired(ompt_mutex_t kind, ompt_wait_id_t wait_id, ompt_address codeptr_ra);
void ompt_mutex_released(ompt_mutex_t kind, ompt_wait_id_t wait_id, ompt_address codeptr_ra);
void ompt_lock_init(ompt_mutex_t kind, uint32_t hint, kmp_mutex_impl_t impl, ompt_wait_id_t wait_id,
                    ompt_address codeptr_ra);
void ompt_lock_destroy(ompt_mutex_t kind, ompt_wait_id_t wait_id, ompt_address codeptr_ra);
void ompt_nest_lock(ompt_scope_endpoint_t endpoint, ompt_wait_id_t wait_id, ompt_address codeptr_ra);
void ompt_flush(ompt_address codeptr_ra);
void ompt_cancel(ompt_task task, ompt_cancel_flag_t flags, ompt_address codeptr_ra);

void ompt_device_initialize(ompt_device_num device_num, const char *type, const char *documentation, int has_tracing);
void ompt_device_finalize(ompt_device_num device_num);
void ompt_device_load(ompt_device_num device_num, const char *filename, int64_t offset_in_file,
                      ompt_address vma_in_file, uint64_t bytes, ompt_address host_addr, ompt_address device_addr,
                      uint64_t module_id);
void ompt_device_unload(ompt_device_num device_num, uint64_t module_id);

#define HETRACE_TARGET(kind)                                                                           \
    void ompt_##kind##_region(ompt_device_num device_num, ompt_task task, ompt_address codeptr_ra);
HETRACE_TARGET(target)
HETRACE_TARGET(target_enter_data)
HETRACE_TARGET(target_exit_data)
HETRACE_TARGET(target_update)
HETRACE_TARGET(target_nowait)
HETRACE_TARGET(target_enter_data_nowait)
HETRACE_TARGET(target_exit_data_nowait)
HETRACE_TARGET(target_update_nowait)
void ompt_target_other_region(ompt_target_t kind, ompt_device_num device_num, ompt_task task, ompt_address codeptr_ra);
void ompt_target_map(uint32_t nitems, const ompt_address *host_addr, const ompt_address *device_addr,
                     const uint64_t *bytes, const ompt_target_map_flag_t *mapping_flags, ompt_address codeptr_ra);
void ompt_target_submit(uint32_t requested_num_teams);

void ompt_target_data_op_alloc(const void *host_addr, ompt_device_num device_num, uint64_t bytes, ompt_address codeptr_ra,
                            void **device_addr);
void ompt_target_data_op_delete(void *device_addr, ompt_device_num device_num, ompt_address codeptr_ra);
#define HETRACE_TRANSFER(kind)                                                                         \
    void ompt_target_data_op_##kind(const void *src_addr, ompt_device_num src_device_num, void *dest_addr, \
                                 ompt_device_num dest_device_num, uint64_t bytes, ompt_address codeptr_ra);
HETRACE_TRANSFER(transfer_to_device)
HETRACE_TRANSFER(transfer_from_device)
HETRACE_TRANSFER(associate)
HETRACE_TRANSFER(disassociate)
void ompt_target_data_op(ompt_target_data_op_t optype, ompt_address src_addr, ompt_device_num src_device_num,
                         ompt_address dest_addr, ompt_device_num dest_device_num, uint64_t bytes,
                         ompt_address codeptr_ra);

void ompt_control_tool(uint64_t command, uint64_t modifier, ompt_address arg, ompt_address codeptr_ra);
void ompt_error(ompt_severity_t severity, const char *message, uint64_t length, ompt_address codeptr_ra);
