/* Starts a program as an unusual caller does: `caller CONDITION… -- PROGRAM ARGUMENT…`. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

static void dispose(int n, void (*handler)(int))
{
    struct kernel_action a = {.handler = (void *)handler};
    syscall(SYS_rt_sigaction, n, &a, NULL, 8);
}

/* Appends to the environment whatever is there already. */
static void append(const char *entry)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **fresh = calloc(n + 2, sizeof *fresh);
    memcpy(fresh, environ, n * sizeof *fresh);
    fresh[n] = strdup(entry);
    environ = fresh;
}

static unsigned long blocked;

static int apply(const char *what)
{
    long a = 0, b = 0;
    if (sscanf(what, "ignore:%ld", &a) == 1)
        dispose(a, SIG_IGN);
    else if (!strcmp(what, "default"))
        for (int n = 1; n <= 64; n++)
            dispose(n, SIG_DFL);
    else if (sscanf(what, "block:%ld", &a) == 1)
        blocked |= 1ul << (a - 1);
    else if (sscanf(what, "close:%ld", &a) == 1)
        close(a);
    else if (sscanf(what, "open:%ld", &a) == 1)
        dup2(open("/dev/zero", O_RDONLY | O_CLOEXEC), a);
    else if (sscanf(what, "limit:%ld:%ld", &a, &b) == 2) {
        struct rlimit l;
        getrlimit(a, &l);
        l.rlim_cur = b;
        return setrlimit(a, &l);
    } else if (sscanf(what, "nice:%ld", &a) == 1)
        return setpriority(PRIO_PROCESS, 0, a);
    else if (sscanf(what, "umask:%lo", (unsigned long *)&a) == 1)
        umask(a);
    else if (!strncmp(what, "variable:", 9))
        append(what + 9);
    else if (!strcmp(what, "no variables"))
        environ = calloc(1, sizeof *environ);
    else if (sscanf(what, "alarm:%ld", &a) == 1)
        alarm(a);
    else if (sscanf(what, "death:%ld", &a) == 1)
        return prctl(PR_SET_PDEATHSIG, a);
    else if (!strcmp(what, "adopt"))
        return prctl(PR_SET_CHILD_SUBREAPER, 1);
    else if (sscanf(what, "slack:%ld", &a) == 1)
        return prctl(PR_SET_TIMERSLACK, a);
    else if (!strcmp(what, "batch"))
        return sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    else if (!strcmp(what, "no new privileges"))
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    else if (!strcmp(what, "no randomization"))
        return personality(ADDR_NO_RANDOMIZE) < 0;
    else if (!strcmp(what, "session"))
        setsid();
    else
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    int n = 1;
    for (; n < argc && strcmp(argv[n], "--"); n++)
        if (apply(argv[n])) {
            fprintf(stderr, "%s: %s\n", argv[n], strerror(errno));
            return 125;
        }
    char text[64];
    snprintf(text, sizeof text, "OBSERVED_SESSION=%d", getsid(0));
    append(text);
    snprintf(text, sizeof text, "OBSERVED_GROUP=%d", getpgrp());
    append(text);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, 8);
    execve(argv[n + 1], argv + n + 1, environ);
    return 124;
}
