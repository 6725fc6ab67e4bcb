/* The events of the made-up API `demo`, as an LTTng-UST interposer would have them: an
 * entry and an exit for each function, arguments of all common kinds.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER demo
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./demo_tp.h"

#if !defined(DEMO_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DEMO_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#define NUMBER(type, name) lttng_ust_field_integer(type, name, name)
#define HANDLE(name) lttng_ust_field_integer_hex(uint64_t, name, name)
#define TEXT(name) lttng_ust_field_string(name, name)
#define MANY(type, name, count) lttng_ust_field_sequence(type, name, name, uint32_t, count)

#define EXIT(name, type)                                                              \
    LTTNG_UST_TRACEPOINT_EVENT(demo, name##_exit, LTTNG_UST_TP_ARGS(type, result),     \
                               LTTNG_UST_TP_FIELDS(NUMBER(type, result)))

/* The outermost call of a step; the others lie inside of it. */
LTTNG_UST_TRACEPOINT_EVENT(demo, step_entry,
    LTTNG_UST_TP_ARGS(uint64_t, number),
    LTTNG_UST_TP_FIELDS(NUMBER(uint64_t, number)))
EXIT(step, int32_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, open_entry,
    LTTNG_UST_TP_ARGS(const char *, path, int32_t, flags, uint32_t, mode),
    LTTNG_UST_TP_FIELDS(TEXT(path) NUMBER(int32_t, flags) NUMBER(uint32_t, mode)))
EXIT(open, int32_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, read_entry,
    LTTNG_UST_TP_ARGS(int32_t, file, uint64_t, into, uint64_t, bytes),
    LTTNG_UST_TP_FIELDS(NUMBER(int32_t, file) HANDLE(into) NUMBER(uint64_t, bytes)))
EXIT(read, int64_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, seek_entry,
    LTTNG_UST_TP_ARGS(int32_t, file, int64_t, to, int32_t, whence),
    LTTNG_UST_TP_FIELDS(NUMBER(int32_t, file) NUMBER(int64_t, to) NUMBER(int32_t, whence)))
EXIT(seek, int64_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, allocate_entry,
    LTTNG_UST_TP_ARGS(uint64_t, bytes, uint32_t, flags),
    LTTNG_UST_TP_FIELDS(NUMBER(uint64_t, bytes) NUMBER(uint32_t, flags)))
LTTNG_UST_TRACEPOINT_EVENT(demo, allocate_exit,
    LTTNG_UST_TP_ARGS(uint64_t, result),
    LTTNG_UST_TP_FIELDS(HANDLE(result)))

LTTNG_UST_TRACEPOINT_EVENT(demo, free_entry,
    LTTNG_UST_TP_ARGS(uint64_t, memory),
    LTTNG_UST_TP_FIELDS(HANDLE(memory)))
EXIT(free, int32_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, setArgument_entry,
    LTTNG_UST_TP_ARGS(uint64_t, kernel, uint32_t, index, const uint8_t *, value, uint32_t, bytes),
    LTTNG_UST_TP_FIELDS(HANDLE(kernel) NUMBER(uint32_t, index) MANY(uint8_t, value, bytes)))
EXIT(setArgument, int32_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, launch_entry,
    LTTNG_UST_TP_ARGS(uint64_t, queue, uint64_t, kernel, const uint64_t *, global, uint32_t, dimensions),
    LTTNG_UST_TP_FIELDS(HANDLE(queue) HANDLE(kernel) MANY(uint64_t, global, dimensions)))
EXIT(launch, int32_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, copy_entry,
    LTTNG_UST_TP_ARGS(uint64_t, to, uint64_t, from, uint64_t, bytes, uint8_t, blocking),
    LTTNG_UST_TP_FIELDS(HANDLE(to) HANDLE(from) NUMBER(uint64_t, bytes) NUMBER(uint8_t, blocking)))
EXIT(copy, int32_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, scale_entry,
    LTTNG_UST_TP_ARGS(uint64_t, memory, double, factor),
    LTTNG_UST_TP_FIELDS(HANDLE(memory) lttng_ust_field_float(double, factor, factor)))
EXIT(scale, int32_t)

LTTNG_UST_TRACEPOINT_EVENT(demo, getName_entry,
    LTTNG_UST_TP_ARGS(uint64_t, object, uint32_t, what),
    LTTNG_UST_TP_FIELDS(HANDLE(object) NUMBER(uint32_t, what)))
LTTNG_UST_TRACEPOINT_EVENT(demo, getName_exit,
    LTTNG_UST_TP_ARGS(int32_t, result, const char *, name),
    LTTNG_UST_TP_FIELDS(NUMBER(int32_t, result) TEXT(name)))

LTTNG_UST_TRACEPOINT_EVENT(demo, wait_entry,
    LTTNG_UST_TP_ARGS(const uint64_t *, events, uint32_t, count),
    LTTNG_UST_TP_FIELDS(MANY(uint64_t, events, count)))
EXIT(wait, int32_t)

#endif

#include <lttng/tracepoint-event.h>
