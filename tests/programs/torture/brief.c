/* A process that ends as soon as its commands have: what devices did is recorded last.
 *
 *   buffers=N       one queue, and a short write to each of N buffers
 *   processes=P     P children at once do that, by exec
 *
 * FIGURE queues and commands say what all of them made.
 */
#include "torture.h"
#include <sys/wait.h>

static void short_buffers(long n)
{
    cl_int error;
    CALL(clGetPlatformIDs(1, &opened.platform, NULL));
    CALL(clGetDeviceIDs(opened.platform, CL_DEVICE_TYPE_ALL, 1, &opened.device, NULL));
    cl_context context;
    CALL(context = clCreateContext(NULL, 1, &opened.device, NULL, NULL, &error));
    CHECK(error == CL_SUCCESS);
    cl_command_queue queue;
    CALL(queue = clCreateCommandQueue(context, opened.device, 0, &error));
    CHECK(error == CL_SUCCESS);
    static char bytes[64];
    for (long i = 0; i < n; i++) {
        cl_mem buffer;
        CALL(buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof bytes, NULL, &error));
        CHECK(error == CL_SUCCESS);
        CALL(error = clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof bytes, bytes, 0, NULL, NULL));
        CHECK(error == CL_SUCCESS);
        CALL(clReleaseMemObject(buffer));
    }
    CALL(clFinish(queue));
}

int main(int argc, char **argv)
{
    long n = number(argc, argv, "buffers", 500), processes = number(argc, argv, "processes", 0);
    char own[32];
    board_make();
    thread_count();
    snprintf(own, sizeof own, "buffers=%ld", n);
    for (long i = 0; i < processes; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            execl("/proc/self/exe", argv[0], own, (char *)NULL);
            _exit(97);
        }
    }
    if (processes == 0) {
        short_buffers(n);
        figure("queues", 1);
        figure("commands", n);
        slot_print(mine);
        return 7;
    }
    for (long i = 0; i < processes; i++) {
        int status;
        CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    put("done\n", 5);
    board_print();
    return 7;
}
