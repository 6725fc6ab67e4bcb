/* The ways a process ends. All calls before the end must be in the trace.
 *
 *   ending exit | return | _exit | thread-exit   exit status 7
 *   ending abort | kill | segv                   dies of SIGABRT, SIGKILL, SIGSEGV,
 *                                                in the middle of a loop of calls
 *   ending hang       a wait that never ends, killed by SIGKILL from outside
 *   ending execs      executes itself from another thread while the main thread waits; what is
 *                     executed has its ids, and ends with status 7
 *   ending norelease  exit status 0 with everything still held and a queue at work
 *
 * EXPECT comes before the end, and counts the call that never returns.
 */
#include "cl_util.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

enum { CALLS = 1000, STATUS = 7 };

static void call_platforms(int times)
{
    for (int i = 0; i < times; i++) {
        cl_uint n = 0;
        OK(clGetPlatformIDs(0, NULL, &n));
    }
}

/* In the middle of the loop, between two calls. */
static void die_in_loop(const char *mode)
{
    for (int i = 0;; i++) {
        call_platforms(1);
        if (i < CALLS / 2)
            continue;
        expect_print();
        if (strcmp(mode, "kill") == 0)
            kill(getpid(), SIGKILL);
        else if (strcmp(mode, "segv") == 0)
            *(volatile int *)8 = 1;
        else
            abort();
    }
}

/* The killer is forked before OpenCL starts, and waits until the parent is asleep in
 * its call: 1 s is far more than the call needs. */
static void hang(void)
{
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t target = getpid();
    pid_t killer = fork();
    CHECK(killer >= 0);
    if (killer == 0) {
        char c;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(ready[0], &c, 1) == 1) {
            sleep_ms(300);
            kill(target, SIGKILL);
        }
        _exit(0);
    }
    struct dev d = dev_open();
    cl_event never = MAKE(clCreateUserEvent(d.context, &err));
    call_platforms(10);
    CL_COUNT("clWaitForEvents", 1); /* the line must be out before the call */
    expect_print();
    CHECK(write(ready[1], "x", 1) == 1);
    clWaitForEvents(1, &never);
    fail(__FILE__, __LINE__, "the wait ended", 0);
}

static volatile int waits;

/* Once the main thread has come to its call, 300 ms is far more than it needs to be asleep in it. */
static void *execute(void *unused)
{
    (void)unused;
    while (!waits)
        sleep_ms(1);
    sleep_ms(300);
    execl("/proc/self/exe", "ending", "exit", (char *)NULL);
    fail(__FILE__, __LINE__, "nothing was executed", 0);
    return NULL;
}

static void execs(void)
{
    struct dev d = dev_open();
    cl_event never = MAKE(clCreateUserEvent(d.context, &err));
    pthread_t t;
    CHECK(pthread_create(&t, NULL, execute, NULL) == 0);
    waits = 1;
    clWaitForEvents(1, &never);
    fail(__FILE__, __LINE__, "the wait ended", 0);
}

static void norelease(void)
{
    struct dev d = dev_open();
    cl_command_queue queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    cl_mem buffer = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 1 << 20, NULL, &err));
    cl_event gate = MAKE(clCreateUserEvent(d.context, &err));
    unsigned char seven = 7;
    cl_event done;
    for (int i = 0; i < 10; i++)
        OK(clEnqueueFillBuffer(queue, buffer, &seven, 1, 0, 1 << 20, 0, NULL, &done));
    /* The gate never opens: this command never runs. */
    OK(clEnqueueFillBuffer(queue, buffer, &seven, 1, 0, 1 << 20, 1, &gate, NULL));
    OK(clFlush(queue));
}

static void *exit_from_thread(void *unused)
{
    (void)unused;
    call_platforms(10);
    expect_print();
    exit(STATUS);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "exit";
    if (strcmp(mode, "hang") == 0)
        hang();
    if (strcmp(mode, "execs") == 0)
        execs();
    if (strcmp(mode, "norelease") == 0) {
        norelease();
        expect_print();
        return 0;
    }
    call_platforms(CALLS);
    if (strcmp(mode, "thread-exit") == 0) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, exit_from_thread, NULL) == 0);
        for (;;)
            pause();
    }
    if (strcmp(mode, "abort") == 0 || strcmp(mode, "kill") == 0 || strcmp(mode, "segv") == 0)
        die_in_loop(mode);
    expect_print();
    if (strcmp(mode, "_exit") == 0)
        _exit(STATUS);
    if (strcmp(mode, "exit") == 0)
        exit(STATUS);
    return strcmp(mode, "return") == 0 ? STATUS : 2;
}
