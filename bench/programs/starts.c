/* What it costs to start a program, again and again: page faults and processor time of each process.
 *
 *   starts HOW_OFTEN PROGRAM [ARGUMENT...]
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static double ms(struct timeval t) { return t.tv_sec * 1e3 + t.tv_usec / 1e3; }

int main(int argc, char **argv)
{
    int times = argc > 2 ? atoi(argv[1]) : 0;
    struct rusage all;
    if (times < 1)
        return 2;
    for (int i = 0; i < times; i++) {
        pid_t child;
        int status;
        if (posix_spawnp(&child, argv[2], NULL, NULL, argv + 2, environ) || waitpid(child, &status, 0) != child ||
            status)
            return 1;
    }
    getrusage(RUSAGE_CHILDREN, &all);
    printf("faults %.3f\n", (double)all.ru_minflt / times);
    printf("ms %.4f\n", (ms(all.ru_utime) + ms(all.ru_stime)) / times);
    return 0;
}
