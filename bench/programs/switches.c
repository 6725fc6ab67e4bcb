/* Two processes that wake each other over two pipes: as many context switches as there can be.
 *
 *   switches [-n ROUND TRIPS] [-1 | -2]
 *
 * -1: both on the first processor; -2: one on each of the first two. Prints nanoseconds per round trip,
 * of which each is up to two wake-ups, four system calls and at least two switches; the processor time of both, which
 * depends less on what else runs; and how many switches getrusage counted. The output is lines of `key value`.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        perror("sched_setaffinity");
}

static void pass_on(int from, int to, long n, int first)
{
    char byte = 0;
    for (long i = 0; i < n; i++) {
        if (first && write(to, &byte, 1) != 1)
            exit(1);
        if (read(from, &byte, 1) != 1)
            exit(1);
        if (!first && write(to, &byte, 1) != 1)
            exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static struct rusage used(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return used;
}

static double processor(struct rusage u)
{
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
}

static long switches(struct rusage u)
{
    return u.ru_nvcsw + u.ru_nivcsw;
}

int main(int argc, char **argv)
{
    long n = 200000;
    int processors = 0;
    for (int c; (c = getopt(argc, argv, "n:12")) != -1;) {
        if (c == 'n' && (n = strtol(optarg, NULL, 10)) > 0)
            continue;
        if (c == '?' || c == 'n')
            return 2;
        processors = c - '0';
    }
    int there[2], back[2];
    if (pipe(there) || pipe(back))
        return 1;
    if (processors)
        stay_on(0);
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        if (processors)
            stay_on(processors - 1);
        pass_on(there[0], back[1], n, 0);
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    double start = now();
    pass_on(back[0], there[1], n, 1);
    double took = now() - start;
    if (waitpid(child, NULL, 0) != child)
        return 1;
    printf("roundtrip.ns %.1f\n", took / n);
    struct rusage self = used(RUSAGE_SELF), other = used(RUSAGE_CHILDREN);
    printf("processor.ns %.1f\n", (processor(self) + processor(other)) / n);
    printf("switches %ld\n", switches(self) + switches(other));
    return 0;
}
