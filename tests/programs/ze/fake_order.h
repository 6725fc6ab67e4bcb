/* What the API promises of the order of commands, and no more: commands of a queue begin one after the other, and have
 * ended, with what they wrote, behind a barrier without waits, in an in-order queue behind the next command, or when the
 * host has waited. The fake device runs everything in one order; who counts on more than was promised is counted here
 * (BAD), and gets times that nobody ran for. FAKE_ZE_REFUSES=copies: the driver copies no times; =mixed: it takes no
 * list that does beside others. */
#pragma once
#include "fake_ze.h"

/* No command runs at this time. */
#define UNDEFINED 0xdead

/* Numbers of commands are from 1 here. All up to this one had ended when the host waited for all. */
static unsigned long host_knows;
static unsigned long bad, unreset;
static const char *first_bad = "-";

static void is_bad(const char *what) {
    if (!bad++)
        first_bad = what;
}

static int refuses(const char *what) {
    const char *refused = getenv("FAKE_ZE_REFUSES");
    return refused && strstr(refused, what);
}

/* Whether what a command did is certain to be there for what begins now in a queue. */
static int is_certain(struct moment then, const struct object *queue) {
    if (then.number <= host_knows)
        return 1;
    return then.queue == queue && (queue->in_order || then.number <= queue->barrier);
}

static void resets(struct object *event, struct moment now) {
    if (!is_certain(event->copied, now.queue))
        is_bad("an event is reset while its times are copied");
    event->is_set = 0;
    event->reset = now;
}

static void signals(struct object *event, struct moment now) {
    if (event->copied.number && !is_certain(event->reset, now.queue))
        is_bad("an event is signalled while it is reset");
    unreset += event->copied.number && event->is_set;
    event->written = now;
}

static void copies(const struct query *query, struct moment now, uint64_t (*ticks)(uint64_t)) {
    for (uint32_t i = 0; i < query->events; i++) {
        struct object *event = query->of[i];
        int is_known = event->is_set && is_certain(event->written, now.queue);
        if (!is_known)
            is_bad("times are copied of an event that may not have been signalled");
        for (int word = 0; word < 4; word++)
            query->to[i][word] = is_known ? ticks(event->times[word & 1]) : UNDEFINED;
        event->copied = now;
    }
}

/* Whether a command of a list that copies times uses an event. */
static int uses(const struct job *job, const struct object *event) {
    if (!job->list || !job->list->copies_times)
        return 0;
    for (uint32_t i = 0; job->query && i < job->query->events; i++)
        if (job->query->of[i] == event)
            return 1;
    return job->resets == event || job->signals == event;
}
