/* A process that ends as soon as its commands have: what devices did is recorded last.
 *
 *   buffers=N       one queue, and a short write to each of N buffers
 *   threads=T       then as many by each of T threads that have just begun, whose rings appear
 *                   as the process ends
 *   end=quick       no clFinish, and _exit as soon as these threads have been joined
 *   stop=1          the launcher sleeps from when these threads begin to when the process has
 *                   ended: stopped in the middle of draining, it finds rings of a dead process
 *   processes=P     P children do that, by exec, four at a time
 *   busy=B          while B threads of the parent call so much that draining takes its time: then
 *                   much can happen between one look for new rings and the next
 *
 * FIGURE queues and commands say what all of them made.
 */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { AT_ONCE = 4, BUSY = 2, BUSY_MS = 20, STOPPED_MS = 300 };

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

static int stop;
/* Of the launcher, if it is to be stopped. */
static long launcher;

static void *busy(void *unused)
{
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        api_call(i);
        if (i % 4096 == 4095)
            usleep(2000);
    }
    return unused;
}

static void *late(void *unused)
{
    thread_count();
    pthread_barrier_wait(&all_here);
    write_buffers(late_buffers);
    /* Who waits collects: the records of these commands come into this thread's ring. */
    CALL(clFinish(queue));
    return unused;
}

/* In the middle of draining, as far as chance has it: that has much to do just now. */
static void stop_launcher(void)
{
    pthread_t t[BUSY];
    for (int i = 0; i < BUSY; i++)
        CHECK(pthread_create(&t[i], NULL, busy, NULL) == 0);
    sleep_ms(BUSY_MS);
    CHECK(kill(launcher, SIGSTOP) == 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < BUSY; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
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
    if (launcher)
        stop_launcher();
    pthread_barrier_wait(&all_here);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    if (!quick)
        CALL(clFinish(queue));
}

static void await(void)
{
    int status;
    CHECK(wait(&status) > 0);
    /* Long enough for what the launcher does now and then only. */
    if (launcher) {
        sleep_ms(STOPPED_MS);
        kill(launcher, SIGCONT);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void start(char *name, char *buffers, char *threads, int quick)
{
    char launched_by[32];
    snprintf(launched_by, sizeof launched_by, "launcher=%ld", launcher);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", name, buffers, threads, quick ? "end=quick" : "end=slow", launched_by,
              (char *)NULL);
        _exit(97);
    }
}

int main(int argc, char **argv)
{
    long n = number(argc, argv, "buffers", 500), processes = number(argc, argv, "processes", 0);
    long threads = number(argc, argv, "threads", 0);
    int quick = strcmp(word(argc, argv, "end", ""), "quick") == 0;
    char own[32], own_threads[32];
    board_make();
    thread_count();
    launcher = number(argc, argv, "launcher", 0);
    if (number(argc, argv, "stop", 0) && getenv("HETRACE_SESSION"))
        launcher = getppid();
    snprintf(own, sizeof own, "buffers=%ld", n);
    snprintf(own_threads, sizeof own_threads, "threads=%ld", threads);
    if (processes == 0) {
        short_buffers(n, threads, quick);
        figure("queues", 1);
        figure("commands", n + threads * late_buffers);
        slot_print(mine);
        if (quick)
            _exit(7);
        return 7;
    }
    pthread_t others[16];
    long busy_threads = number(argc, argv, "busy", 0);
    CHECK(busy_threads <= 16);
    if (busy_threads)
        api_open();
    for (long i = 0; i < busy_threads; i++)
        CHECK(pthread_create(&others[i], NULL, busy, NULL) == 0);
    long at_once = launcher ? 1 : AT_ONCE;
    for (long i = 0; i < processes + at_once; i++) {
        if (i >= at_once)
            await();
        if (i < processes)
            start(argv[0], own, own_threads, quick);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (long i = 0; i < busy_threads; i++)
        CHECK(pthread_join(others[i], NULL) == 0);
    put("done\n", 5);
    board_print();
    return 7;
}
