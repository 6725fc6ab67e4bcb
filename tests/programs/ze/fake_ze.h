/* What the two files of the fake driver share. */
#pragma once
#include <level_zero/ze_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_ze_names.h"

extern unsigned long fake_counts[FUNCTIONS];
#define COUNT(name) __atomic_fetch_add(&fake_counts[ID_##name], 1, __ATOMIC_RELAXED)
#define EXPORT __attribute__((visibility("default")))

struct object;

/* The events whose times a command copies, and where to. */
struct query {
    uint32_t events;
    uint64_t (*to)[4];
    struct object *of[];
};

/* A command of a queue; numbers are from 1. */
struct moment {
    unsigned long number;
    const struct object *queue;
};

/* What a command does when it runs. */
struct job {
    const char *kind;
    char name[64];
    uint64_t duration; /* in ticks */
    int across;        /* it ends when the counter has begun anew */
    int grows;         /* it lasts so much longer with each execution of its list */
    int is_barrier;    /* it waits for all before it */
    struct object *signals, *resets, *fence, *queue, *list;
    struct query *query;
    unsigned long number;
};

/* An object of any kind. */
struct object {
    /* Events and fences. */
    int is_set, is_fence, polls, has_times, flags, ends_copies;
    /* One that needs no reset, and the number of the command that it means. */
    int counts;
    unsigned long means;
    uint64_t times[2];
    /* When it was signalled, reset, and its times were copied. */
    struct moment written, reset, copied;
    /* Queues: the last barrier that has ended. */
    unsigned long barrier;
    int in_order;
    /* Lists: what was recorded; how often it was executed, and its last command then. */
    int immediate, recorded, copies_times, ordinal, executions;
    unsigned long last;
    struct job *jobs;
    char text[64];
};

static inline struct object *of(void *handle) {
    return handle;
}

ze_result_t make(void *place, const char *text);
ze_result_t end(void *handle);
/* Memory is about to be freed. */
void fake_freed(const void *memory);

/* Says how the device's counter goes. */
void fake_timer(ze_device_properties_t *properties);
/* Functions that came after the loader's version. */
void *fake_newer(const char *name);
