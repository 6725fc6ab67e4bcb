/* Time and numbers for the benchmark programs. Output is lines of `key value`; keys are
 * dotted, values in nanoseconds unless the key says otherwise.
 *
 * Time is the TSC, read as hetrace reads it, and converted with a rate measured against
 * CLOCK_MONOTONIC_RAW at the start.
 */
#ifndef HETRACE_BENCH_H
#define HETRACE_BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static double ns_per_tick;

/* No earlier work may drift out of the measured part, no later work into it. */
static inline uint64_t ticks(void)
{
    _mm_lfence();
    uint64_t t = __rdtsc();
    _mm_lfence();
    return t;
}

static inline uint64_t raw_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static inline void calibrate(void)
{
    uint64_t n = raw_ns(), t = ticks();
    while (raw_ns() - n < 50000000)
        ;
    uint64_t t2 = ticks(), n2 = raw_ns();
    ns_per_tick = (double)(n2 - n) / (t2 - t);
    printf("tsc.ghz %.6f\n", 1 / ns_per_tick);
}

/* Mean and standard deviation of the rounds, as the article's tables have them, and the
 * median and the least, which a busy machine disturbs less. Returns the median. */
static inline int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double print_rounds(const char *key, double *ns, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += ns[i];
    double mean = sum / n;
    for (int i = 0; i < n; i++)
        squares += (ns[i] - mean) * (ns[i] - mean);
    qsort(ns, n, sizeof *ns, by_size);
    printf("%s.mean %.3f\n", key, mean);
    printf("%s.sd %.3f\n", key, n > 1 ? sqrt(squares / (n - 1)) : 0);
    double median = n % 2 ? ns[n / 2] : (ns[n / 2 - 1] + ns[n / 2]) / 2;
    printf("%s.median %.3f\n", key, median);
    printf("%s.min %.3f\n", key, ns[0]);
    fflush(stdout);
    return median;
}

enum { MAX_ROUNDS = 1000 };

/* Options of all three programs. A pause between rounds lets a tracer's reader empty
 * its buffers, so that the cost is that of recording and not that of dropping. */
struct options {
    int rounds, pause_ms;
    long most;
};

static inline struct options options_of(int argc, char **argv, struct options o)
{
    int c;
    while ((c = getopt(argc, argv, "r:p:n:")) != -1) {
        long v = c == '?' ? 0 : strtol(optarg, NULL, 10);
        if (c == 'r' && v > 0 && v <= MAX_ROUNDS)
            o.rounds = v;
        else if (c == 'p' && v >= 0)
            o.pause_ms = v;
        else if (c == 'n' && v > 0)
            o.most = v;
        else
            exit(2);
    }
    printf("rounds %d\n", o.rounds);
    return o;
}

static inline void pause_between(const struct options *o)
{
    usleep(o->pause_ms * 1000);
}

/* Runs `body` in rounds and prints nanoseconds per unit. `warm` comes before each: after
 * a pause the caches are cold, and a round of one call would measure just that. */
#define ROUNDS(o, key, units, warm, body)                   \
    do {                                                    \
        double ns_[MAX_ROUNDS];                             \
        for (int r_ = 0; r_ < (o)->rounds; r_++) {          \
            warm;                                           \
            uint64_t start_ = ticks();                      \
            body;                                           \
            ns_[r_] = (ticks() - start_) * ns_per_tick / (units); \
            pause_between(o);                               \
        }                                                   \
        print_rounds(key, ns_, (o)->rounds);                \
    } while (0)

#endif
