/* Counts of a fake library's own calls, printed when the process ends. */
#ifndef FAKE_H
#define FAKE_H
#include <stdio.h>
#include <string.h>

struct count {
    const char *name;
    int known, calls;
    struct count *next;
};

static struct count *counts;

/* One more call of the function around it; `known` if the model has it. */
#define COUNT(is_known)                                                                  \
    do {                                                                                 \
        static struct count here = {__func__, is_known, 0, NULL};                        \
        if (__atomic_fetch_add(&here.calls, 1, __ATOMIC_RELAXED) == 0) {                 \
            struct count *first = __atomic_load_n(&counts, __ATOMIC_RELAXED);            \
            do                                                                           \
                here.next = first;                                                       \
            while (!__atomic_compare_exchange_n(&counts, &first, &here, 0,               \
                                                __ATOMIC_RELEASE, __ATOMIC_RELAXED));    \
        }                                                                                \
    } while (0)

__attribute__((destructor)) static void report(void)
{
    for (struct count *c = counts; c; c = c->next)
        printf("%s %s=%d\n", c->known ? "EXPECT" : "UNKNOWN", c->name, c->calls);
    fflush(stdout);
}
#endif
