/* Prints everything that a program can see of how it was started, without process ids, times and
 * addresses: run by a caller itself and run by a launcher in between, it must print the same.
 */
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

static FILE *out;
#define SAY(...) fprintf(out, __VA_ARGS__)

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

static void signals(void)
{
    for (int n = 1; n <= 64; n++) {
        struct kernel_action a = {0};
        if (syscall(SYS_rt_sigaction, n, NULL, &a, 8) == 0)
            SAY("signal %d: %s\n", n, a.handler == (void *)SIG_DFL   ? "default"
                                         : a.handler == (void *)SIG_IGN ? "ignored"
                                                                        : "caught");
    }
    unsigned long set = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &set, 8);
    SAY("blocked %#lx\n", set);
    syscall(SYS_rt_sigpending, &set, 8);
    SAY("pending %#lx\n", set);
}

static void descriptors(void)
{
    for (int fd = 0; fd < 64; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0)
            continue;
        char name[64], target[256] = "?";
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(name, target, sizeof target - 1);
        if (length > 0)
            target[length] = 0;
        /* The number of a pipe is another each time. */
        char *number = strchr(target, '[');
        if (number)
            *number = 0;
        SAY("descriptor %d: flags %d status %#x %s\n", fd, flags, fcntl(fd, F_GETFL), target);
    }
}

static void limits(void)
{
    for (int n = 0; n < RLIM_NLIMITS; n++) {
        struct rlimit l;
        if (getrlimit(n, &l) == 0)
            SAY("limit %d: %lld %lld\n", n, (long long)l.rlim_cur, (long long)l.rlim_max);
    }
}

static void scheduling(void)
{
    SAY("nice %d policy %d slack %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
           prctl(PR_GET_TIMERSLACK));
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    SAY("processors %d\n", CPU_COUNT(&set));
    static const int timers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    for (int n = 0; n < 3; n++) {
        struct itimerval t;
        getitimer(timers[n], &t);
        SAY("timer %d: %s\n", n, t.it_value.tv_sec || t.it_value.tv_usec ? "set" : "not set");
    }
}

static void process(void)
{
    char text[4096];
    mode_t mask = umask(0);
    umask(mask);
    SAY("umask %03o\n", mask);
    SAY("folder %s\n", getcwd(text, sizeof text) ? text : strerror(errno));
    SAY("personality %#x\n", personality(0xffffffff));
    int adopts = 9, death = 9;
    prctl(PR_GET_CHILD_SUBREAPER, &adopts);
    prctl(PR_GET_PDEATHSIG, &death);
    SAY("prctl: subreaper %d death signal %d dumpable %d no new privileges %d keep "
           "capabilities %d securebits %d no huge pages %d\n",
           adopts, death, prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
           prctl(PR_GET_KEEPCAPS), prctl(PR_GET_SECUREBITS), prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    SAY("terminal %s\n", terminal >= 0 ? "yes" : "no");
    /* Who started us, or who started that, says which numbers are its own. */
    const char *session = getenv("OBSERVED_SESSION"), *group = getenv("OBSERVED_GROUP");
    SAY("session %s group %s\n", session && atoi(session) == getsid(0) ? "the caller's" : "other",
           group && atoi(group) == getpgrp() ? "the caller's" : "other");
    SAY("users %u %u %u %u\n", getuid(), geteuid(), getgid(), getegid());
}

int main(int argc, char **argv)
{
    char *text = NULL;
    size_t size = 0;
    out = open_memstream(&text, &size);
    descriptors();
    signals();
    limits();
    scheduling();
    process();
    for (int n = 0; n < argc; n++)
        SAY("argument %d: %s\n", n, argv[n]);
    for (char **e = environ; *e; e++)
        SAY("variable %s\n", *e);
    fclose(out);
    /* Stdout may be closed. */
    const char *path = getenv("OBSERVED");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : 1;
    return fd >= 0 && write(fd, text, size) == (ssize_t)size ? 7 : 9;
}
