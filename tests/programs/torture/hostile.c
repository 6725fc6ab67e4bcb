/* A traced program that turns on the session it is recorded in.
 *
 *   hostile attacks=N seed=S RECORDER ARGUMENTS...
 *
 * Three processes run the recorder, again and again, while a fourth damages files of the
 * session's folder at random: truncated, grown, overwritten with noise, deleted, made
 * unreadable, replaced by FIFOs, links, folders, sockets and devices. Recorders may die of that
 * (they map what is truncated); whoever collects the records may not. Files that were there
 * before the first recorder are spared in the first half: without them nobody records.
 *
 * It is linked statically: nothing of the tracer's is in this process, so its status, 7, is its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORDERS = 3, PATHS = 4096, PATH = 512, ROUND_US = 2000, PATIENCE_S = 30 };

static unsigned long state = 88172645463325252ul;

static unsigned long chance(unsigned long below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static char paths[PATHS][PATH];
static char first_paths[PATHS][PATH];
static int found, first_found;

static void find(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d)) && found < PATHS;) {
        struct stat s;
        if (e->d_name[0] == '.')
            continue;
        char path[PATH + 256];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strlen(path) >= PATH || lstat(path, &s))
            continue;
        strcpy(paths[found++], path);
        if (S_ISDIR(s.st_mode))
            find(path);
    }
    closedir(d);
}

static void overwrite(const char *path, int everywhere)
{
    unsigned char noise[4096];
    struct stat s;
    if (lstat(path, &s) || !S_ISREG(s.st_mode))
        return;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return;
    /* The head of a file holds what steers the reader; it gets its share. */
    for (int i = 0; i < (everywhere ? 16 : 1); i++) {
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = chance(4) ? chance(256) : 255 * chance(2);
        size_t length = everywhere ? sizeof noise : 1 + chance(64);
        long size = s.st_size > 0 ? s.st_size : 1;
        long at = chance(2) ? chance(size < 512 ? size : 512) : chance(size);
        if (at + (long)length <= size && pwrite(fd, noise, length, at) < 0)
            break;
    }
    close(fd);
}

static void resize(const char *path, long size)
{
    struct stat s;
    if (lstat(path, &s) == 0 && S_ISREG(s.st_mode) && truncate(path, size) != 0)
        return;
}

static void gone(const char *path)
{
    if (unlink(path) && errno == EISDIR)
        rmdir(path);
}

static void attack(const char *path)
{
    struct stat s;
    char other[PATH + 8];
    if (lstat(path, &s))
        return;
    snprintf(other, sizeof other, "%s-%lu", path, chance(10));
    switch (chance(16)) {
    case 0: resize(path, 0); break;
    case 1: resize(path, s.st_size / 2); break;
    case 2: resize(path, chance(s.st_size > 0 ? s.st_size : 1)); break;
    case 3: resize(path, 1l << (30 + chance(12))); break;
    case 4:
    case 5: overwrite(path, 0); break;
    case 6: overwrite(path, 1); break;
    case 7: gone(path); break;
    case 8: chmod(path, chance(2) ? 0 : chance(01000)); break;
    case 9: gone(path); (void)!mkfifo(path, 0600); break;
    case 10: gone(path); (void)!symlink(chance(2) ? "/dev/zero" : "/dev/full", path); break;
    case 11: gone(path); (void)!symlink(path, path); break;
    case 12: gone(path); mkdir(path, 0700); break;
    case 13: gone(path); mknod(path, S_IFSOCK | 0600, 0); break;
    case 14: gone(path); mknod(path, S_IFCHR | 0600, makedev(1, 5)); break;
    default: (void)!rename(path, other); break;
    }
}

static pid_t record(char **line)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execv(line[0], line);
        _exit(127);
    }
    return pid;
}

static int was_there_first(const char *path)
{
    for (int i = 0; i < first_found; i++)
        if (strcmp(first_paths[i], path) == 0)
            return 1;
    return 0;
}

static void attacks(const char *session, long n)
{
    /* Some rounds find nothing to attack; not for ever. */
    for (long i = 0, rounds = 0; i < n && rounds < 20 * n; rounds++) {
        found = 0;
        find(session);
        const char *path = found ? paths[chance(found)] : "";
        if (i >= n / 2 || !was_there_first(path)) {
            attack(path);
            i++;
        }
        usleep(chance(ROUND_US));
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    const char *session = getenv("HETRACE_SESSION");
    long n = argc > 1 ? atol(argv[1] + strlen("attacks=")) : 0;
    state ^= argc > 2 ? strtoul(argv[2] + strlen("seed="), NULL, 10) * 0x9e3779b97f4a7c15ul : 0;
    if (argc < 4)
        return 2;
    if (session)
        find(session);
    first_found = found;
    memcpy(first_paths, paths, sizeof paths);
    pid_t attacker = session ? fork() : -1, recorders[RECORDERS];
    if (attacker == 0)
        attacks(session, n);
    int started = 0, signalled = 0, hung = 0, status;
    for (int i = 0; i < RECORDERS; i++, started++)
        recorders[i] = record(argv + 3);
    /* Recorders follow each other until the attacker has ended. */
    int under_attack = attacker > 0;
    while (under_attack) {
        pid_t pid = wait(&status);
        if (pid == attacker) {
            under_attack = 0;
            continue;
        }
        signalled += WIFSIGNALED(status);
        for (int i = 0; i < RECORDERS; i++)
            if (recorders[i] == pid) {
                recorders[i] = record(argv + 3);
                started++;
            }
    }
    /* The last ones end by themselves, or hang: then they are counted and killed. */
    for (int i = 0; i < RECORDERS; i++) {
        int waited = 0;
        pid_t pid;
        while ((pid = waitpid(recorders[i], &status, WNOHANG)) == 0 && waited++ < PATIENCE_S * 100)
            usleep(10000);
        if (pid == 0) {
            hung++;
            kill(recorders[i], SIGKILL);
            waitpid(recorders[i], &status, 0);
        } else {
            signalled += WIFSIGNALED(status);
        }
    }
    printf("FIGURE attacks=%ld\nFIGURE recorders=%d\nFIGURE recorders_killed=%d\nFIGURE hung=%d\n",
           session ? n : 0, started, signalled, hung);
    if (session)
        printf("FIGURE session=%s\n", session);
    return 7;
}
