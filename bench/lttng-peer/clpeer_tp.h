/* The events. Each traced call has two: the entry with all arguments and what their
 * pointers point at, the exit with the result and the outputs. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER clpeer

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./clpeer_tp.h"

#if !defined(CLPEER_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define CLPEER_TP_H

#include "clpeer.h"
#include <lttng/tracepoint.h>
#include <stdint.h>

#define PEER_HEX(name) lttng_ust_field_integer_hex(uintptr_t, name, (uintptr_t)name)
#define PEER_UINT(name) lttng_ust_field_integer(uint32_t, name, name)
#define PEER_SIZE(name) lttng_ust_field_integer(size_t, name, name)
#define PEER_SIZES(name, n) \
    lttng_ust_field_sequence(size_t, name##_vals, name, uint32_t, (name) ? (n) : 0)
#define PEER_EVENTS(name, n) \
    lttng_ust_field_sequence_hex(uintptr_t, name##_vals, (const uintptr_t *)(name), uint32_t, \
                                 (name) ? (n) : 0)
#define PEER_BYTES(name, n) \
    lttng_ust_field_sequence_hex(uint8_t, name##_vals, (const uint8_t *)(name), uint32_t, \
                                 (name) ? (n) : 0)

LTTNG_UST_TRACEPOINT_EVENT(clpeer, clGetPlatformIDs_entry,
    LTTNG_UST_TP_ARGS(cl_uint, num_entries, const void *, platforms, const void *, num_platforms),
    LTTNG_UST_TP_FIELDS(PEER_UINT(num_entries) PEER_HEX(platforms) PEER_HEX(num_platforms)))

LTTNG_UST_TRACEPOINT_EVENT(clpeer, clGetPlatformIDs_exit,
    LTTNG_UST_TP_ARGS(cl_int, result, uint32_t, count, const void *, platforms, uint32_t, got),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int32_t, result, result)
        lttng_ust_field_integer(uint32_t, num_platforms_val, count)
        PEER_EVENTS(platforms, got)))

LTTNG_UST_TRACEPOINT_EVENT(clpeer, clSetKernelArg_entry,
    LTTNG_UST_TP_ARGS(const void *, kernel, cl_uint, arg_index, size_t, arg_size,
                      const void *, arg_value),
    LTTNG_UST_TP_FIELDS(PEER_HEX(kernel) PEER_UINT(arg_index) PEER_SIZE(arg_size)
                        PEER_HEX(arg_value) PEER_BYTES(arg_value, arg_size)))

LTTNG_UST_TRACEPOINT_EVENT(clpeer, clEnqueueNDRangeKernel_entry,
    LTTNG_UST_TP_ARGS(const void *, command_queue, const void *, kernel, cl_uint, work_dim,
                      const size_t *, global_work_offset, const size_t *, global_work_size,
                      const size_t *, local_work_size, cl_uint, num_events_in_wait_list,
                      const void *, event_wait_list, const void *, event),
    LTTNG_UST_TP_FIELDS(
        PEER_HEX(command_queue) PEER_HEX(kernel) PEER_UINT(work_dim)
        PEER_HEX(global_work_offset) PEER_SIZES(global_work_offset, work_dim)
        PEER_HEX(global_work_size) PEER_SIZES(global_work_size, work_dim)
        PEER_HEX(local_work_size) PEER_SIZES(local_work_size, work_dim)
        PEER_UINT(num_events_in_wait_list)
        PEER_HEX(event_wait_list) PEER_EVENTS(event_wait_list, num_events_in_wait_list)
        PEER_HEX(event)))

LTTNG_UST_TRACEPOINT_EVENT(clpeer, clEnqueueReadBuffer_entry,
    LTTNG_UST_TP_ARGS(const void *, command_queue, const void *, buffer, cl_uint, blocking_read,
                      size_t, offset, size_t, size, const void *, ptr,
                      cl_uint, num_events_in_wait_list, const void *, event_wait_list,
                      const void *, event),
    LTTNG_UST_TP_FIELDS(
        PEER_HEX(command_queue) PEER_HEX(buffer) PEER_UINT(blocking_read) PEER_SIZE(offset)
        PEER_SIZE(size) PEER_HEX(ptr) PEER_UINT(num_events_in_wait_list)
        PEER_HEX(event_wait_list) PEER_EVENTS(event_wait_list, num_events_in_wait_list)
        PEER_HEX(event)))

/* Both enqueues: the result and the event that came out. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(clpeer, enqueue_exit_class,
    LTTNG_UST_TP_ARGS(cl_int, result, const void *, event_val),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, result, result) PEER_HEX(event_val)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(clpeer, enqueue_exit_class, clpeer,
    clEnqueueNDRangeKernel_exit, LTTNG_UST_TP_ARGS(cl_int, result, const void *, event_val))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(clpeer, enqueue_exit_class, clpeer,
    clEnqueueReadBuffer_exit, LTTNG_UST_TP_ARGS(cl_int, result, const void *, event_val))

LTTNG_UST_TRACEPOINT_EVENT(clpeer, clFinish_entry,
    LTTNG_UST_TP_ARGS(const void *, command_queue),
    LTTNG_UST_TP_FIELDS(PEER_HEX(command_queue)))

/* Calls whose only output is the code. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(clpeer, code_class,
    LTTNG_UST_TP_ARGS(cl_int, result),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, result, result)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(clpeer, code_class, clpeer, clSetKernelArg_exit,
    LTTNG_UST_TP_ARGS(cl_int, result))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(clpeer, code_class, clpeer, clFinish_exit,
    LTTNG_UST_TP_ARGS(cl_int, result))

/* Both queries: the object, what is asked, and the answer's bytes. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(clpeer, query_entry_class,
    LTTNG_UST_TP_ARGS(const void *, object, cl_uint, param_name, size_t, param_value_size,
                      const void *, param_value, const void *, param_value_size_ret),
    LTTNG_UST_TP_FIELDS(PEER_HEX(object) PEER_UINT(param_name) PEER_SIZE(param_value_size)
                        PEER_HEX(param_value) PEER_HEX(param_value_size_ret)))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(clpeer, query_exit_class,
    LTTNG_UST_TP_ARGS(cl_int, result, size_t, size_ret, const void *, param_value, size_t, got),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int32_t, result, result)
        lttng_ust_field_integer(size_t, param_value_size_ret_val, size_ret)
        PEER_BYTES(param_value, got)))
#define PEER_QUERY(name)                                                                      \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(clpeer, query_entry_class, clpeer, name##_entry,       \
        LTTNG_UST_TP_ARGS(const void *, object, cl_uint, param_name, size_t, param_value_size, \
                          const void *, param_value, const void *, param_value_size_ret))      \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(clpeer, query_exit_class, clpeer, name##_exit,         \
        LTTNG_UST_TP_ARGS(cl_int, result, size_t, size_ret, const void *, param_value,         \
                          size_t, got))
PEER_QUERY(clGetEventInfo)
PEER_QUERY(clGetKernelInfo)

/* One command on the device, at its completion. */
LTTNG_UST_TRACEPOINT_EVENT(clpeer, command,
    LTTNG_UST_TP_ARGS(const void *, command_queue, const void *, event, cl_uint, command_type,
                      cl_int, status, const uint64_t *, times),
    LTTNG_UST_TP_FIELDS(
        PEER_HEX(command_queue) PEER_HEX(event) PEER_UINT(command_type)
        lttng_ust_field_integer(int32_t, status, status)
        lttng_ust_field_integer(uint64_t, queued, times[0])
        lttng_ust_field_integer(uint64_t, submit, times[1])
        lttng_ust_field_integer(uint64_t, start, times[2])
        lttng_ust_field_integer(uint64_t, end, times[3])))

#endif

#include <lttng/tracepoint-event.h>
