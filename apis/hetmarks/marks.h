/*
 * What include/hetrace.h lets programs say, as hetrace records it: the functions have
 * the names that programs call.
 */
#ifndef HETRACE_MARKS_H
#define HETRACE_MARKS_H

#include <stdint.h>

typedef uint64_t hetrace_range;

/* What push and pop answer instead of a level. */
typedef enum {
    HETRACE_NO_RANGE = -2
} hetrace_error;

int hetrace_push(const char *message);
int hetrace_pop(void);
hetrace_range hetrace_start(const char *message);
void hetrace_end(hetrace_range id);
void hetrace_mark(const char *message, uint64_t value);
void hetrace_name_thread(uint32_t thread_id, const char *name);
void hetrace_capture_start(void);
void hetrace_capture_stop(void);
void hetrace_snapshot(void);

#endif
