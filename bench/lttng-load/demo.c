/* A program that does nothing but make events, for traces to read.
 *
 *   demo STEPS [threads=2] [processes=2]
 *
 * Each thread makes STEPS steps; a step is 12 calls, one with 11 inside of it: 24 events.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "demo_tp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT(...) lttng_ust_tracepoint(demo, __VA_ARGS__)

static long steps;

static void step(uint64_t i)
{
    static const char *paths[] = {"/dev/accelerator0", "/etc/demo/settings.conf",
                                  "/usr/share/demo/kernels/matrix_multiply.bin"};
    static const char *names[] = {"queue", "an accelerator with a long name", "kernel"};
    const uint64_t global[] = {1024, i % 64 + 1, 4}, events[] = {0x5000 + i, 0x6000 + i};
    const uint64_t value = 0x7f0000000000 + i % 4096 * 256;
    int32_t error = i % 1000 == 999 ? -5 : 0;

    AT(step_entry, i);
    AT(open_entry, paths[i % 3], 2, 0644);
    AT(open_exit, (int32_t)(3 + i % 20));
    AT(seek_entry, (int32_t)(3 + i % 20), (int64_t)(i * 4096), 0);
    AT(seek_exit, (int64_t)(i * 4096));
    AT(allocate_entry, 4096 << i % 8, 1);
    AT(allocate_exit, value);
    AT(read_entry, (int32_t)(3 + i % 20), value, 4096);
    AT(read_exit, (int64_t)(4096 - i % 7));
    AT(setArgument_entry, 0x1000 + i % 5, (uint32_t)(i % 13), (const uint8_t *)&value,
       i % 2 ? 4 : sizeof value);
    AT(setArgument_exit, 0);
    AT(copy_entry, value, value + 65536, 4096 << i % 8, i % 2);
    AT(copy_exit, error);
    AT(scale_entry, value, 0.5 + (double)(i % 100));
    AT(scale_exit, 0);
    AT(launch_entry, 0x2000 + i % 2, 0x1000 + i % 5, global, (uint32_t)(i % 3 + 1));
    AT(launch_exit, 0);
    AT(getName_entry, 0x2000 + i % 2, 0x1072);
    AT(getName_exit, 0, names[i % 3]);
    AT(wait_entry, events, (uint32_t)(i % 2 + 1));
    AT(wait_exit, 0);
    AT(free_entry, value);
    AT(free_exit, 0);
    AT(step_exit, error);
}

static void *work(void *nothing)
{
    for (long i = 0; i < steps; i++)
        step((uint64_t)i);
    return nothing;
}

static int number(int argc, char **argv, int at, int otherwise)
{
    return argc > at ? atoi(argv[at]) : otherwise;
}

int main(int argc, char **argv)
{
    steps = argc > 1 ? atol(argv[1]) : 0;
    int threads = number(argc, argv, 2, 2), processes = number(argc, argv, 3, 2);
    if (steps <= 0 || threads < 1 || threads > 64 || processes < 1 || processes > 64) {
        fprintf(stderr, "demo STEPS [threads=2] [processes=2]\n");
        return 2;
    }
    if (processes > 1) {
        /* Programs of their own: a forked one would not register with the session daemon. */
        char one[32];
        snprintf(one, sizeof one, "%d", threads);
        int failed = 0;
        for (int p = 0; p < processes; p++)
            if (fork() == 0) {
                execl("/proc/self/exe", argv[0], argv[1], one, "1", (char *)NULL);
                _exit(127);
            }
        for (int status; wait(&status) > 0;)
            failed |= status;
        return failed != 0;
    }
    pthread_t all[64];
    for (int t = 0; t < threads; t++)
        if (pthread_create(&all[t], NULL, work, NULL))
            return 1;
    for (int t = 0; t < threads; t++)
        pthread_join(all[t], NULL);
    return 0;
}
