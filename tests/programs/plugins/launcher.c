/* Preloaded into hetrace: a wall clock that somebody sets, and an end in the middle of something.
 *
 *   WALL_CLOCK=FILE          CLOCK_REALTIME is so many seconds later as there are in FILE, if it is there
 *   KILL_AT=before:SUFFIX    SIGKILL before what has a name with that end gets another name,
 *   KILL_AT=after:SUFFIX     or right after that, or
 *   KILL_AT=remove:SUFFIX    before it is removed from a folder
 *
 * The machine's own clock can't be set for a test, and no name space has one of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
    const char *path = getenv("WALL_CLOCK");
    char text[32] = "";
    int before = errno;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        ssize_t got = read(file, text, sizeof text - 1);
        text[got > 0 ? got : 0] = 0;
        close(file);
    }
    errno = before;
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, clock, now) != 0)
        return -1;
    if (clock == CLOCK_REALTIME)
        now->tv_sec += offset();
    return 0;
}

static void end_at(const char *when, const char *name)
{
    const char *at = getenv("KILL_AT");
    size_t length = strlen(when);
    if (!at || strncmp(at, when, length) != 0 || at[length] != ':')
        return;
    const char *suffix = at + length + 1;
    if (strlen(name) >= strlen(suffix) && strcmp(name + strlen(name) - strlen(suffix), suffix) == 0)
        kill(getpid(), SIGKILL);
}

int rename(const char *from, const char *to)
{
    end_at("before", from);
    int done = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    end_at("after", from);
    return done;
}

int unlinkat(int folder, const char *name, int flags)
{
    end_at("remove", name);
    return (int)syscall(SYS_unlinkat, folder, name, flags);
}
