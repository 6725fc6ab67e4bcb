/*
 * ITT as hetrace records it.
 *
 * The functions have the names that programs call; what Intel's header passes in structs is laid flat here:
 *   id, extra         the two numbers of an __itt_id; 0 and 0 are none
 *   parent, …         the same of the parent
 *   domain            what __itt_domain_create returned
 *   registered        what __itt_string_handle_create (or __itt_event_create, __itt_mark_create) returned for the text;
 *                     of a frame its domain, which is what it is called by; of a task that a function stands for that
 *                     function's address
 * What is begun by one call and ended by another one, perhaps of another thread, is a range with an `id` of
 * hetrace's own: made of the domain, what it is (a region, a frame, …), and the program's id.
 */
#ifndef HETRACE_ITT_H
#define HETRACE_ITT_H

#include <stddef.h>
#include <stdint.h>

typedef struct ittDomain_st *ittDomain;
typedef struct ittString_st *ittString;
typedef struct ittCounter_st *ittCounter;
typedef struct ittHeap_st *ittHeap;
typedef struct ittFrame_st *ittFrame;
typedef struct ittClock_st *ittClock;
typedef struct ittHistogram_st *ittHistogram;
typedef struct ittTrackGroup_st *ittTrackGroup;
typedef struct ittTrack_st *ittTrack;
/* An address that stands for an object of the program's. */
typedef uint64_t ittAddress;

typedef enum {
    __itt_metadata_unknown = 0,
    __itt_metadata_u64 = 1,
    __itt_metadata_s64 = 2,
    __itt_metadata_u32 = 3,
    __itt_metadata_s32 = 4,
    __itt_metadata_u16 = 5,
    __itt_metadata_s16 = 6,
    __itt_metadata_float = 7,
    __itt_metadata_double = 8
} ittMetadata;

typedef enum {
    __itt_scope_unknown = 0,
    __itt_scope_global = 1,
    __itt_scope_track_group = 2,
    __itt_scope_track = 3,
    __itt_scope_task = 4,
    __itt_scope_marker = 5
} ittScope;

typedef enum {
    __itt_relation_is_unknown = 0,
    __itt_relation_is_dependent_on = 1,
    __itt_relation_is_sibling_of = 2,
    __itt_relation_is_parent_of = 3,
    __itt_relation_is_continuation_of = 4,
    __itt_relation_is_child_of = 5,
    __itt_relation_is_continued_by = 6,
    __itt_relation_is_predecessor_to = 7
} ittRelation;

typedef enum {
    __itt_collection_scope_host = 1,
    __itt_collection_scope_offload = 2,
    __itt_collection_scope_all = 0x7fffffff
} ittCollection;

typedef enum {
    __itt_sync_unknown = 0,
    __itt_sync_barrier = 1,
    __itt_sync_mutex = 2
} ittSyncKind;

typedef enum {
    __itt_track_type_normal = 0
} ittTrackKind;

/* What begins and ends of tasks answer instead of a level. */
typedef enum {
    ITT_NO_LEVEL = -2
} ittError;

/* Collection */
void __itt_pause(void);
void __itt_resume(void);
void __itt_pause_scoped(ittCollection scope);
void __itt_resume_scoped(ittCollection scope);
void __itt_detach(void);

/* Threads, domains and texts */
void __itt_thread_set_name(uint32_t thread_id, const char *name);
void __itt_thread_ignore(void);
ittDomain __itt_domain_create(const char *name);
ittString __itt_string_handle_create(const char *string);

/* Tasks, of one thread, one inside the other; and those that overlap */
void __itt_id_create(ittDomain domain, uint64_t id, uint64_t extra);
void __itt_id_destroy(ittDomain domain, uint64_t id, uint64_t extra);
int __itt_task_begin(ittDomain domain, uint64_t task, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittString registered);
int __itt_task_begin_fn(ittDomain domain, uint64_t task, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittAddress registered);
int __itt_task_end(ittDomain domain);
uint64_t __itt_task_begin_overlapped(ittDomain domain, uint64_t task, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittString registered);
void __itt_task_end_overlapped(ittDomain domain, uint64_t id);
void __itt_task_group(ittDomain domain, uint64_t group, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittString registered);

/* Regions, frames and events */
uint64_t __itt_region_begin(ittDomain domain, uint64_t region, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittString registered);
void __itt_region_end(ittDomain domain, uint64_t id);
uint64_t __itt_frame_begin_v3(ittDomain domain, uint64_t frame, uint64_t extra, ittDomain registered);
void __itt_frame_end_v3(ittDomain domain, uint64_t id);
void __itt_frame_submit_v3(ittDomain domain, uint64_t frame, uint64_t extra, uint64_t begin, uint64_t end);
ittFrame __itt_frame_create(const char *name);
uint64_t __itt_frame_begin(ittFrame registered);
void __itt_frame_end(uint64_t id);
ittString __itt_event_create(const char *name);
uint64_t __itt_event_start(ittString registered);
void __itt_event_end(uint64_t id);

/* Moments */
void __itt_marker(ittDomain domain, uint64_t marker, uint64_t extra, ittString registered, ittScope scope);
ittString __itt_mark_create(const char *name);
int __itt_mark(ittString registered, const char *parameter);
int __itt_mark_off(ittString registered);
int __itt_mark_global(ittString registered, const char *parameter);
int __itt_mark_global_off(ittString registered);

/* Counters; `value` has the bits of the counter's type */
ittCounter __itt_counter_create(const char *name, const char *of);
ittCounter __itt_counter_create_typed(const char *name, const char *of, ittMetadata value_type);
ittCounter __itt_counter_create_v3(ittDomain domain, const char *name, ittMetadata value_type);
void __itt_counter_destroy(ittCounter counter);
void __itt_counter_inc(ittCounter counter);
void __itt_counter_inc_delta(ittCounter counter, uint64_t value);
void __itt_counter_dec(ittCounter counter);
void __itt_counter_dec_delta(ittCounter counter, uint64_t value);
void __itt_counter_inc_v3(ittDomain domain, ittString registered);
void __itt_counter_inc_delta_v3(ittDomain domain, ittString registered, uint64_t value);
void __itt_counter_dec_v3(ittDomain domain, ittString registered);
void __itt_counter_dec_delta_v3(ittDomain domain, ittString registered, uint64_t value);
void __itt_counter_set_value(ittCounter counter, ittMetadata value_type, uint64_t value);
void __itt_counter_set_value_v3(ittCounter counter, ittMetadata value_type, uint64_t value);
void __itt_counter_set_value_ex(ittCounter counter, ittClock clock, uint64_t timestamp, ittMetadata value_type, uint64_t value);

/* What belongs to a task, region or frame */
void __itt_metadata_add(ittDomain domain, uint64_t id, uint64_t extra, ittString registered, ittMetadata value_type, size_t count, const void *data, size_t size);
void __itt_metadata_str_add(ittDomain domain, uint64_t id, uint64_t extra, ittString registered, const char *data, size_t length);
void __itt_metadata_add_with_scope(ittDomain domain, ittScope scope, ittString registered, ittMetadata value_type, size_t count, const void *data, size_t size);
void __itt_metadata_str_add_with_scope(ittDomain domain, ittScope scope, ittString registered, const char *data, size_t length);
/* `registered` is the format; what follows it is not recorded */
void __itt_formatted_metadata_add(ittDomain domain, ittString registered);
void __itt_formatted_metadata_add_overlapped(ittDomain domain, uint64_t id, uint64_t extra, ittString registered);

/* Histograms: `length` columns; without `x_data` they lie side by side */
ittHistogram __itt_histogram_create(ittDomain domain, const char *name, ittMetadata x_type, ittMetadata y_type);
void __itt_histogram_submit(ittHistogram histogram, ittMetadata x_type, ittMetadata y_type, size_t length, const void *x_data, size_t x_size, const void *y_data, size_t y_size);

/* Tracks: places on which a thread's later tasks are to be drawn */
ittTrackGroup __itt_track_group_create(ittString registered, ittTrackKind kind);
ittTrack __itt_track_create(ittTrackGroup group, ittString registered, ittTrackKind kind);
void __itt_set_track(ittTrack track);
void __itt_relation_add_to_current(ittDomain domain, ittRelation relation, uint64_t tail, uint64_t tail_extra);
void __itt_relation_add(ittDomain domain, uint64_t head, uint64_t head_extra, ittRelation relation, uint64_t tail, uint64_t tail_extra);

/* With times of a clock of the program's own */
ittClock __itt_clock_domain_create(ittAddress function, ittAddress data);
void __itt_clock_domain_reset(void);
void __itt_id_create_ex(ittDomain domain, ittClock clock, uint64_t timestamp, uint64_t id, uint64_t extra);
void __itt_id_destroy_ex(ittDomain domain, ittClock clock, uint64_t timestamp, uint64_t id, uint64_t extra);
void __itt_task_begin_ex(ittDomain domain, ittClock clock, uint64_t timestamp, uint64_t task, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittString registered);
void __itt_task_begin_fn_ex(ittDomain domain, ittClock clock, uint64_t timestamp, uint64_t task, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittAddress function);
void __itt_task_end_ex(ittDomain domain, ittClock clock, uint64_t timestamp);
void __itt_task_begin_overlapped_ex(ittDomain domain, ittClock clock, uint64_t timestamp, uint64_t task, uint64_t extra, uint64_t parent, uint64_t parent_extra, ittString registered);
void __itt_task_end_overlapped_ex(ittDomain domain, ittClock clock, uint64_t timestamp, uint64_t task, uint64_t extra);
void __itt_marker_ex(ittDomain domain, ittClock clock, uint64_t timestamp, uint64_t marker, uint64_t extra, ittString registered, ittScope scope);
uint64_t __itt_get_timestamp(void);

/* Objects that threads synchronize by */
void __itt_sync_create(ittAddress object, const char *object_type, const char *name, ittSyncKind kind);
void __itt_sync_rename(ittAddress object, const char *name);
void __itt_sync_destroy(ittAddress object);
void __itt_sync_prepare(ittAddress object);
void __itt_sync_cancel(ittAddress object);
void __itt_sync_acquired(ittAddress object);
void __itt_sync_releasing(ittAddress object);
void __itt_fsync_prepare(ittAddress object);
void __itt_fsync_cancel(ittAddress object);
void __itt_fsync_acquired(ittAddress object);
void __itt_fsync_releasing(ittAddress object);

/* Allocators of the program's own */
ittHeap __itt_heap_function_create(const char *name, const char *of);
void __itt_heap_allocate_begin(ittHeap heap, size_t size, int initialized);
void __itt_heap_allocate_end(ittHeap heap, ittAddress address, size_t size, int initialized);
void __itt_heap_free_begin(ittHeap heap, ittAddress address);
void __itt_heap_free_end(ittHeap heap, ittAddress address);
void __itt_heap_reallocate_begin(ittHeap heap, ittAddress address, size_t size, int initialized);
void __itt_heap_reallocate_end(ittHeap heap, ittAddress address, ittAddress moved, size_t size, int initialized);

/* Code that the program made or loaded by itself */
void __itt_module_load(ittAddress start, ittAddress end, const char *path);
void __itt_module_unload(ittAddress start);

#endif
