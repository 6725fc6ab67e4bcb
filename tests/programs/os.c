/* What the operating system has to do for a program, in numbers that it can be asked for.
 *
 *   os shorts N        N processes that end at once
 *   os threads N       N threads that end at once
 *   os sleeps N        N short sleeps, then the context switches of this thread by getrusage:
 *                      "voluntary N involuntary N"
 *   os refused CMD …   CMD without perf_event_open and bpf, as in a container
 *   os no-perf CMD …   CMD without perf_event_open
 *   os no-bpf CMD …    CMD without bpf
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int shorts(int n)
{
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            _exit(0);
        }
        if (pid < 0) {
            perror("fork");
            return 1;
        }
        /* A few at a time. */
        if (i % 8 == 7) {
            while (wait(NULL) > 0) {
            }
        }
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}

static void *nothing(void *argument)
{
    return argument;
}

static int threads(int n)
{
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL)) {
            return 1;
        }
        pthread_join(thread, NULL);
    }
    return 0;
}

static int sleeps(int n)
{
    struct timespec nap = {0, 100000};
    for (int i = 0; i < n; i++) {
        /* Some work between two sleeps, so that others may interrupt it. */
        for (volatile int k = 0; k < 100000; k++) {
        }
        nanosleep(&nap, NULL);
    }
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("voluntary %ld involuntary %ld\n", use.ru_nvcsw, use.ru_nivcsw);
    return 0;
}

/* Refuses two system calls, which may be the same. */
static int refused(int first, int second, char **command)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("seccomp");
        return 1;
    }
    execvp(command[0], command);
    perror(command[0]);
    return 127;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "shorts")) {
        return shorts(atoi(argv[2]));
    }
    if (argc == 3 && !strcmp(argv[1], "threads")) {
        return threads(atoi(argv[2]));
    }
    if (argc == 3 && !strcmp(argv[1], "sleeps")) {
        return sleeps(atoi(argv[2]));
    }
    if (argc > 2 && !strcmp(argv[1], "refused")) {
        return refused(__NR_perf_event_open, __NR_bpf, argv + 2);
    }
    if (argc > 2 && !strcmp(argv[1], "no-perf")) {
        return refused(__NR_perf_event_open, __NR_perf_event_open, argv + 2);
    }
    if (argc > 2 && !strcmp(argv[1], "no-bpf")) {
        return refused(__NR_bpf, __NR_bpf, argv + 2);
    }
    return 2;
}
