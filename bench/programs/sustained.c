/* The iteration of the CLUST article, many in a row and without pauses, as programs run it.
 *
 *   sustained [-n iterations=4000] [-r rounds=1] [WIDTH HEIGHT]
 *
 * Beside the times: switches between threads and page faults per iteration, of which a
 * tracer must not cause more.
 */
#include <sys/resource.h>

#include "bench.h"
#include "iteration.h"

struct usage {
    double user_us, system_us, waits, preemptions, faults;
};

static struct usage usage_of(int who)
{
    struct rusage u;
    CHECK(getrusage(who, &u) == 0);
    return (struct usage){u.ru_utime.tv_sec * 1e6 + u.ru_utime.tv_usec,
                          u.ru_stime.tv_sec * 1e6 + u.ru_stime.tv_usec, u.ru_nvcsw, u.ru_nivcsw,
                          u.ru_minflt};
}

static void print_usage(const char *who, struct usage a, struct usage b, double n)
{
    printf("%s.user_us %.3f\n", who, (b.user_us - a.user_us) / n);
    printf("%s.system_us %.3f\n", who, (b.system_us - a.system_us) / n);
    printf("%s.waits %.4f\n", who, (b.waits - a.waits) / n);
    printf("%s.preemptions %.4f\n", who, (b.preemptions - a.preemptions) / n);
    printf("%s.faults %.4f\n", who, (b.faults - a.faults) / n);
}

/* The parts of an iteration: the arguments, the launch, the blocking read, the wait. */
enum { PARTS = 4 };
static const char *const part_names[PARTS] = {"arguments", "launch", "read", "finish"};

static uint64_t iterate_by_parts(struct image *m, long iteration, uint64_t at, uint64_t *parts)
{
    uint64_t now;
    set_arguments(m, iteration);
    now = ticks(), parts[0] += now - at, at = now;
    launch(m);
    now = ticks(), parts[1] += now - at, at = now;
    read_back(m);
    now = ticks(), parts[2] += now - at, at = now;
    OK(clFinish(m->queue));
    now = ticks(), parts[3] += now - at;
    return now;
}

static void round_of(struct image *m, long n, double *ns)
{
    struct usage all = usage_of(RUSAGE_SELF), own = usage_of(RUSAGE_THREAD);
    uint64_t start = ticks(), before = start, parts[PARTS] = {0};
    for (long i = 0; i < n; i++) {
        uint64_t now = iterate_by_parts(m, i, before, parts);
        ns[i] = (now - before) * ns_per_tick;
        before = now;
    }
    double total = (before - start) * ns_per_tick;
    struct usage all_end = usage_of(RUSAGE_SELF), own_end = usage_of(RUSAGE_THREAD);
    qsort(ns, n, sizeof *ns, by_size);
    printf("sustained.mean %.3f\n", total / n);
    printf("sustained.median %.3f\n", ns[n / 2]);
    printf("sustained.p90 %.3f\n", ns[n * 9 / 10]);
    printf("sustained.p99 %.3f\n", ns[n * 99 / 100]);
    printf("sustained.min %.3f\n", ns[0]);
    for (int i = 0; i < PARTS; i++)
        printf("%s.mean %.3f\n", part_names[i], parts[i] * ns_per_tick / n);
    print_usage("process", all, all_end, n);
    print_usage("thread", own, own_end, n);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv, (struct options){1, 0, 4000});
    int width = argc - optind == 2 ? atoi(argv[optind]) : 10;
    int height = argc - optind == 2 ? atoi(argv[optind + 1]) : 10;
    calibrate();
    struct dev d = dev_open();
    struct image m = image_open(&d, width, height);
    double *ns = malloc(o.most * sizeof *ns);
    CHECK(ns);
    iterate(&m, 0); /* compiles */
    for (int r = 0; r < o.rounds; r++)
        round_of(&m, o.most, ns);
    verify(&m, o.most - 1);
    free(ns);
    image_close(&m);
    dev_close(&d);
    return 0;
}
