/* What signals do to a program. Without arguments it prints each that it gets, in order, until
 * SIGTERM.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int wait_for_signals(void)
{
    unsigned long all = ~0ul;
    /* Also 32 and 33, which the C library would leave out. */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
    puts("ready");
    for (;;) {
        siginfo_t info = {0};
        int n = syscall(SYS_rt_sigtimedwait, &all, &info, NULL, 8);
        if (n < 0)
            continue;
        if (info.si_code == SI_QUEUE)
            printf("got %d with %d\n", n, info.si_value.sival_int);
        else
            printf("got %d\n", n);
        if (n == SIGTERM)
            return 3;
    }
}

/* A child stops this process for a while. */
static int stopped_by_child(void)
{
    pid_t us = getpid(), child = fork();
    if (child == 0) {
        usleep(100000);
        kill(us, SIGSTOP);
        usleep(300000);
        kill(us, SIGCONT);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        ;
    puts("on");
    return 6;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 1)
        return wait_for_signals();
    if (!strcmp(argv[1], "child"))
        return stopped_by_child();
    for (int i = 1; i < argc; i++) {
        raise(atoi(argv[i]));
        printf("after %s\n", argv[i]);
    }
    return 4;
}
