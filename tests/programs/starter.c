/* Starts a program in one of the ways that there are, and is nothing else: it needs the C library alone.
 *
 *   starter WAY PROGRAM [ARGUMENT...]
 *
 * Returns what the program returns.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int ended(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* As it is in the environment, but in memory of the program's own. */
static char **copied(int further)
{
    int count = 0;
    while (environ[count])
        count++;
    char **copy = calloc(count + further + 1, sizeof *copy);
    for (int i = 0; i < count; i++)
        copy[i] = strdup(environ[i]);
    for (int i = 0; i < further; i++)
        if (asprintf(&copy[count + i], "FURTHER_%d=%d", i, i) < 0)
            abort();
    return copy;
}

static int by_shell(char **line, int reads)
{
    char text[4096] = "";
    for (; *line; line++) {
        strcat(text, "'");
        strcat(strcat(text, *line), "' ");
    }
    if (!reads)
        return WEXITSTATUS(system(text));
    FILE *from = popen(text, "r");
    for (int c; (c = getc(from)) != EOF;)
        putchar(c);
    return WEXITSTATUS(pclose(from));
}

static void replaced(const char *way, char **line)
{
    if (!strcmp(way, "execve"))
        execve(line[0], line, environ);
    else if (!strcmp(way, "execv"))
        execv(line[0], line);
    else if (!strcmp(way, "execvp"))
        execvp(line[0], line);
    else if (!strcmp(way, "execvpe"))
        execvpe(line[0], line, copied(0));
    else if (!strcmp(way, "many"))
        execve(line[0], line, copied(500));
    else if (!strcmp(way, "too-many"))
        execve(line[0], line, copied(3000));
    else if (!strcmp(way, "execlp"))
        execlp(line[0], line[0], line[1], NULL);
    else if (!strcmp(way, "call"))
        syscall(SYS_execve, line[0], line, environ);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *way = argv[1];
    char **line = argv + 2;
    pid_t child = 0;
    if (!strcmp(way, "system") || !strcmp(way, "popen"))
        return by_shell(line, *way == 'p');
    if (!strcmp(way, "posix_spawn") || !strcmp(way, "posix_spawnp")) {
        int failed = (way[11] ? posix_spawnp : posix_spawn)(&child, line[0], NULL, NULL, line, environ);
        return failed ? 98 : ended(child);
    }
    if (!strcmp(way, "vfork")) {
        child = vfork();
        if (!child) {
            execve(line[0], line, environ);
            _exit(97);
        }
        return ended(child);
    }
    replaced(way, line);
    return 96;
}
