/* Processes that multiply.
 *
 *   forks fork        the parent has not used OpenCL; the child opens a device
 *   forks fork-after  the parent has; the child only asks for the platforms, since
 *                     an implementation's threads don't survive a fork
 *   forks nested      child and grandchild
 *   forks many        20 children in a row, then 5 at once
 *   forks exec        replaces itself; both images print their line with one pid
 *   forks spawn       posix_spawn of itself
 *   forks vfork       vfork, then exec of itself
 *
 * Each process prints its own line, EXPECT pid=N ...; lines of one pid add up.
 */
#include "cl_util.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void count_platforms(int times)
{
    for (int i = 0; i < times; i++) {
        cl_uint n = 0;
        OK(clGetPlatformIDs(0, NULL, &n));
        CHECK(n >= 1);
    }
}

static void expect_print_here(void)
{
    expect_print_pid(getpid());
}

/* What a process may do that is the first of its line to use OpenCL. */
static void use_device(void)
{
    struct dev d = dev_open();
    char name[256];
    OK(clGetDeviceInfo(d.device, CL_DEVICE_NAME, sizeof name, name, NULL));
    cl_command_queue queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    cl_mem buffer = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 64, NULL, &err));
    char bytes[64] = {1};
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 64, bytes, 0, NULL, NULL));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
    dev_close(&d);
}

static void await(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pid_t child(void (*body)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        expect_reset();
        body();
        expect_print_here();
        _exit(0);
    }
    return pid;
}

static void three_platforms(void) { count_platforms(3); }

static void with_grandchild(void)
{
    pid_t grandchild = child(three_platforms);
    count_platforms(2);
    await(grandchild);
}

static void many(void)
{
    pid_t pids[5];
    for (int i = 0; i < 20; i++)
        await(child(three_platforms));
    for (int i = 0; i < 5; i++)
        pids[i] = child(three_platforms);
    for (int i = 0; i < 5; i++)
        await(pids[i]);
}

static void spawned(char *self)
{
    char *args[] = {self, "image", NULL};
    pid_t pid;
    CHECK(posix_spawn(&pid, self, NULL, NULL, args, environ) == 0);
    await(pid);
}

static void vforked(char *self)
{
    char *args[] = {self, "image", NULL};
    pid_t pid = vfork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execv(self, args);
        _exit(97);
    }
    await(pid);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "fork";
    char self[] = "/proc/self/exe";

    if (strcmp(mode, "image") == 0) { /* what exec, spawn and vfork start */
        use_device();
    } else if (strcmp(mode, "fork") == 0) {
        await(child(use_device));
        use_device();
    } else if (strcmp(mode, "fork-after") == 0) {
        use_device();
        await(child(three_platforms));
        use_device();
    } else if (strcmp(mode, "nested") == 0) {
        count_platforms(1);
        await(child(with_grandchild));
    } else if (strcmp(mode, "many") == 0) {
        count_platforms(1);
        many();
    } else if (strcmp(mode, "exec") == 0) {
        count_platforms(5);
        expect_print_here();
        char *args[] = {self, "image", NULL};
        execv(self, args);
        fail(__FILE__, __LINE__, "execv", errno);
    } else if (strcmp(mode, "spawn") == 0) {
        count_platforms(1);
        spawned(self);
        count_platforms(1);
    } else if (strcmp(mode, "vfork") == 0) {
        count_platforms(1);
        vforked(self);
        count_platforms(1);
    } else {
        fprintf(stderr, "forks: unknown mode %s\n", mode);
        return 2;
    }
    expect_print_here();
    return 0;
}
