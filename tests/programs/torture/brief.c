/* A process that ends as soon as its commands have: what devices did is recorded last.
 *
 *   buffers=N       one queue, and a short write to each of N buffers
 *   threads=T       then as many by each of T threads that have just begun, whose rings appear
 *                   as the process ends
 *   end=quick       no clFinish, and _exit as soon as these threads have been joined
 *   processes=P     P children at once do that, by exec
 *
 * FIGURE queues and commands say what all of them made.
 */
#include "torture.h"
#include <pthread.h>
#include <sys/wait.h>

static cl_context context;
static cl_command_queue queue;
static pthread_barrier_t all_here;
static long late_buffers;

static void write_buffers(long n)
{
    static char bytes[64];
    cl_int error;
    for (long i = 0; i < n; i++) {
        cl_mem buffer;
        CALL(buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof bytes, NULL, &error));
        CHECK(error == CL_SUCCESS);
        CALL(error = clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof bytes, bytes, 0, NULL, NULL));
        CHECK(error == CL_SUCCESS);
        CALL(clReleaseMemObject(buffer));
    }
}

static void *late(void *unused)
{
    thread_count();
    pthread_barrier_wait(&all_here);
    write_buffers(late_buffers);
    return unused;
}

static void short_buffers(long n, long threads, int quick)
{
    cl_int error;
    pthread_t t[64];
    CHECK(threads <= 64);
    CALL(clGetPlatformIDs(1, &opened.platform, NULL));
    CALL(clGetDeviceIDs(opened.platform, CL_DEVICE_TYPE_ALL, 1, &opened.device, NULL));
    CALL(context = clCreateContext(NULL, 1, &opened.device, NULL, NULL, &error));
    CHECK(error == CL_SUCCESS);
    CALL(queue = clCreateCommandQueue(context, opened.device, 0, &error));
    CHECK(error == CL_SUCCESS);
    late_buffers = threads ? n / threads : 0;
    pthread_barrier_init(&all_here, NULL, threads + 1);
    write_buffers(n);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, late, NULL) == 0);
    pthread_barrier_wait(&all_here);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    if (!quick)
        CALL(clFinish(queue));
}

int main(int argc, char **argv)
{
    long n = number(argc, argv, "buffers", 500), processes = number(argc, argv, "processes", 0);
    long threads = number(argc, argv, "threads", 0);
    int quick = strcmp(word(argc, argv, "end", ""), "quick") == 0;
    char own[32], own_threads[32];
    board_make();
    thread_count();
    snprintf(own, sizeof own, "buffers=%ld", n);
    snprintf(own_threads, sizeof own_threads, "threads=%ld", threads);
    for (long i = 0; i < processes; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            execl("/proc/self/exe", argv[0], own, own_threads, quick ? "end=quick" : "end=slow", (char *)NULL);
            _exit(97);
        }
    }
    if (processes == 0) {
        short_buffers(n, threads, quick);
        figure("queues", 1);
        figure("commands", n + threads * late_buffers);
        slot_print(mine);
        if (quick)
            _exit(7);
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
