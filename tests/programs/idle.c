/* Programs whose device is idle for one planted cause each, and near-misses that look like one.
 *
 *   idle event        a kernel waits for a user event that thread "setter" completes late, behind a marker
 *   idle event-early  the same event, completed before anything waits for it; then host work
 *   idle build        main builds a program while thread "worker" waits to enqueue
 *   idle newborn      main builds a program, and only then begins thread "worker", which enqueues
 *   idle beside       a thread builds all the time and main, which waits for none of it, sleeps between kernels
 *   idle lock         thread "holder" builds while it holds a mutex that main wants before it enqueues
 *   idle host         main works between kernels, after waiting for each
 *   idle ahead        the same work, with the next kernel enqueued before
 *   idle objects      main makes and frees a large buffer between kernels
 *   idle once         the same once, before many kernels
 *   idle small        many empty kernels, one after the other, without waiting
 *   idle busy         one long kernel behind the other: there is nothing to gain
 *   idle polls        the same, and main polls for each
 *   idle reads        a kernel, a blocking read, host work, in turn
 *   idle copies       large copies and kernels in turn on one queue
 *   idle two-queues   the same on two queues, with events
 *   idle one          kernels of one work-group that depend on nothing, on one queue in order
 *   idle chain        the same, and each writes what the one before has written
 *   idle naps         main asks for the state of each kernel, before it may begin, and sleeps between two questions
 *   idle nothing      builds, and launches nothing
 *   idle several      the same on a queue for each of several threads
 */
#include "cl_util.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>

enum { STEPS = 30, SIZE = 32 << 20 };

static struct dev d;
static cl_kernel spin;
static cl_program program;
static cl_mem numbers, large;
static cl_command_queue queue;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready, over;
static char *host;

static const char *source =
    "kernel void spin(global int *a, int n) {\n"
    "    int v = get_global_id(0);\n"
    "    for (int i = 0; i < n; i++) v = v * 1664525 + 1013904223;\n"
    "    a[get_global_id(0)] = v;\n"
    "}\n";

/* Computes; a thread that sleeps does less, whatever the machine is busy with. */
static void work(double ms)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1e3 + (now.tv_nsec - begin.tv_nsec) * 1e-6 < ms);
}

static void launch_on(cl_command_queue q, cl_kernel k, size_t items, cl_uint n, const cl_event *waits, cl_event *event)
{
    OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &items, items < 64 ? &items : NULL, n, waits, event));
}

static void turns(cl_kernel k, int n)
{
    OK(clSetKernelArg(k, 1, sizeof n, &n));
}

static void finish(void)
{
    OK(clFinish(queue));
}

static cl_program fresh(int n)
{
    char text[256];
    /* Unlike all others, so that no cache has it. */
    snprintf(text, sizeof text, "kernel void k%d_%ld(global int *a) { a[0] += %d; }", n, (long)getpid(), n);
    return build(&d, text, "");
}

static void builds(int from, int to)
{
    for (int i = from; i < to; i++)
        OK(clReleaseProgram(fresh(i)));
}

static void begin_thread(pthread_t *thread, void *(*body)(void *), const char *name)
{
    CHECK(pthread_create(thread, NULL, body, (void *)name) == 0);
}

static void *worker(void *name)
{
    prctl(PR_SET_NAME, name);
    CHECK(pthread_mutex_lock(&lock) == 0);
    while (!ready)
        CHECK(pthread_cond_wait(&changed, &lock) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0);
    launch_on(queue, spin, 1, 0, NULL, NULL);
    finish();
    return NULL;
}

static void go(void)
{
    CHECK(pthread_mutex_lock(&lock) == 0);
    ready = 1;
    CHECK(pthread_cond_broadcast(&changed) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0);
}

/* Thread "worker" has made a call before, so that the trace knows it, or begins after the builds. */
static void built(int newborn)
{
    pthread_t thread;
    if (!newborn)
        begin_thread(&thread, worker, "worker");
    builds(1, 4);
    if (newborn)
        begin_thread(&thread, worker, "worker");
    go();
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *builder(void *name)
{
    prctl(PR_SET_NAME, name);
    for (int i = 1; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++)
        OK(clReleaseProgram(fresh(i)));
    return NULL;
}

static void beside(void)
{
    pthread_t thread;
    begin_thread(&thread, builder, "builder");
    for (int i = 0; i < 5; i++) {
        sleep_ms(40);
        launch_on(queue, spin, 1, 0, NULL, NULL);
        finish();
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
}

static pthread_barrier_t held;

static void *holder(void *name)
{
    prctl(PR_SET_NAME, name);
    CHECK(pthread_mutex_lock(&lock) == 0);
    pthread_barrier_wait(&held);
    builds(1, 4);
    CHECK(pthread_mutex_unlock(&lock) == 0);
    return NULL;
}

static void locked(void)
{
    pthread_t thread;
    CHECK(pthread_barrier_init(&held, NULL, 2) == 0);
    begin_thread(&thread, holder, "holder");
    pthread_barrier_wait(&held);
    CHECK(pthread_mutex_lock(&lock) == 0);
    CHECK(pthread_mutex_unlock(&lock) == 0);
    launch_on(queue, spin, 1, 0, NULL, NULL);
    finish();
    CHECK(pthread_join(thread, NULL) == 0);
}

static cl_event gate;

static void *setter(void *name)
{
    prctl(PR_SET_NAME, name);
    work(60);
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    return NULL;
}

/* The marker waits for the event, and the kernel for the marker. */
static void event(int early)
{
    pthread_t thread;
    cl_event marker;
    gate = MAKE(clCreateUserEvent(d.context, &err));
    if (early)
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clEnqueueMarkerWithWaitList(queue, 1, &gate, &marker));
    if (early)
        work(60);
    launch_on(queue, spin, 1, 1, &marker, NULL);
    OK(clFlush(queue));
    if (!early) {
        begin_thread(&thread, setter, "setter");
        CHECK(pthread_join(thread, NULL) == 0);
    }
    finish();
    OK(clReleaseEvent(marker));
    OK(clReleaseEvent(gate));
}

static void steps(int ahead)
{
    turns(spin, 2000000);
    cl_event before = NULL, now;
    for (int i = 0; i < STEPS; i++) {
        if (!ahead) {
            launch_on(queue, spin, 1, 0, NULL, NULL);
            finish();
            work(5);
            continue;
        }
        launch_on(queue, spin, 1, 0, NULL, &now);
        OK(clFlush(queue));
        if (before) {
            OK(clWaitForEvents(1, &before));
            OK(clReleaseEvent(before));
            work(1);
        }
        before = now;
    }
    finish();
    if (before)
        OK(clReleaseEvent(before));
}

static void objects(int often)
{
    turns(spin, 100000);
    for (int i = 0; i < STEPS; i++) {
        launch_on(queue, spin, 1, 0, NULL, NULL);
        finish();
        if (often || i == 0) {
            cl_mem mem = MAKE(clCreateBuffer(d.context, CL_MEM_COPY_HOST_PTR, SIZE, host, &err));
            OK(clReleaseMemObject(mem));
        }
    }
}

static void small(void)
{
    turns(spin, 0);
    for (int i = 0; i < 3000; i++)
        launch_on(queue, spin, 1, 0, NULL, NULL);
    finish();
}

static void busy(int polls)
{
    turns(spin, 3000000);
    for (int i = 0; i < STEPS; i++) {
        cl_event done;
        cl_int status = CL_QUEUED;
        launch_on(queue, spin, 4, 0, NULL, &done);
        OK(clFlush(queue));
        while (polls && i >= STEPS / 2 && status > CL_COMPLETE)
            OK(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
        OK(clReleaseEvent(done));
    }
    finish();
}

static void reads(void)
{
    turns(spin, 500000);
    for (int i = 0; i < STEPS; i++) {
        launch_on(queue, spin, 1, 0, NULL, NULL);
        OK(clEnqueueReadBuffer(queue, large, CL_TRUE, 0, 1 << 20, host, 0, NULL, NULL));
        work(3);
    }
}

/* Copies and kernels of about the same length, in turn. */
static void copies(int queues)
{
    cl_command_queue other = queue;
    if (queues > 1)
        other = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    turns(spin, 4000000);
    for (int i = 0; i < STEPS; i++) {
        OK(clEnqueueWriteBuffer(other, large, CL_FALSE, 0, SIZE, host, 0, NULL, NULL));
        launch_on(queue, spin, 1, 0, NULL, NULL);
        if (queues > 1)
            OK(clFlush(other));
        OK(clFlush(queue));
    }
    OK(clFinish(other));
    finish();
    if (queues > 1)
        OK(clReleaseCommandQueue(other));
}

static void *lane(void *unused)
{
    (void)unused;
    cl_command_queue own = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    cl_kernel kernel = MAKE(clCreateKernel(program, "spin", &err));
    OK(clSetKernelArg(kernel, 0, sizeof numbers, &numbers));
    turns(kernel, 4000000);
    for (int i = 0; i < STEPS / 2; i++)
        launch_on(own, kernel, 1, 0, NULL, NULL);
    OK(clFinish(own));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(own));
    return NULL;
}

static void lanes(int threads)
{
    pthread_t all[8];
    for (int i = 0; i < threads; i++)
        begin_thread(&all[i], lane, "lane");
    for (int i = 0; i < threads; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
}

static void one(int depends)
{
    cl_mem own[8];
    turns(spin, 4000000);
    for (int i = 0; i < 8; i++)
        own[i] = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 4096, NULL, &err));
    for (int i = 0; i < STEPS; i++) {
        OK(clSetKernelArg(spin, 0, sizeof numbers, depends ? &numbers : &own[i % 8]));
        launch_on(queue, spin, 1, 0, NULL, NULL);
    }
    finish();
    for (int i = 0; i < 8; i++)
        OK(clReleaseMemObject(own[i]));
}

static sem_t begun, opened;

/* Each kernel waits for the gate that this thread opens once main has asked. */
static void *opener(void *name)
{
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < STEPS; i++) {
        CHECK(sem_wait(&begun) == 0);
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        CHECK(sem_post(&opened) == 0);
    }
    return NULL;
}

/* The first question comes before the kernel may begin, on a busy machine, too. */
static void naps(void)
{
    pthread_t thread;
    CHECK(sem_init(&begun, 0, 0) == 0 && sem_init(&opened, 0, 0) == 0);
    begin_thread(&thread, opener, "opener");
    for (int i = 0; i < STEPS; i++) {
        cl_event done;
        cl_int status = CL_QUEUED;
        gate = MAKE(clCreateUserEvent(d.context, &err));
        launch_on(queue, spin, 1, 1, &gate, &done);
        OK(clFlush(queue));
        for (int asked = 0; asked == 0 || status > CL_COMPLETE; asked = 1) {
            OK(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
            if (asked == 0)
                CHECK(sem_post(&begun) == 0);
            sleep_ms(5);
        }
        CHECK(sem_wait(&opened) == 0);
        OK(clReleaseEvent(done));
        OK(clReleaseEvent(gate));
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

static int is(const char *what, const char *mode)
{
    return strcmp(what, mode) == 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    d = dev_open();
    program = build(&d, source, "");
    spin = MAKE(clCreateKernel(program, "spin", &err));
    queue = MAKE(clCreateCommandQueue(d.context, d.device, 0, &err));
    numbers = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, 4096, NULL, &err));
    large = MAKE(clCreateBuffer(d.context, CL_MEM_READ_WRITE, SIZE, NULL, &err));
    host = calloc(1, SIZE);
    CHECK(host != NULL);
    OK(clSetKernelArg(spin, 0, sizeof numbers, &numbers));
    turns(spin, 1000);
    /* The first one is compiled when it is enqueued. */
    for (int i = 0; i < 2 && !is(what, "nothing"); i++) {
        launch_on(queue, spin, 1, 0, NULL, NULL);
        finish();
    }
    if (is(what, "event") || is(what, "event-early"))
        event(is(what, "event-early"));
    else if (is(what, "build") || is(what, "newborn"))
        built(is(what, "newborn"));
    else if (is(what, "beside"))
        beside();
    else if (is(what, "lock"))
        locked();
    else if (is(what, "host") || is(what, "ahead"))
        steps(is(what, "ahead"));
    else if (is(what, "objects") || is(what, "once"))
        objects(is(what, "objects"));
    else if (is(what, "small"))
        small();
    else if (is(what, "busy") || is(what, "polls"))
        busy(is(what, "polls"));
    else if (is(what, "reads"))
        reads();
    else if (is(what, "copies") || is(what, "two-queues"))
        copies(is(what, "copies") ? 1 : 2);
    else if (is(what, "one") || is(what, "chain"))
        one(is(what, "chain"));
    else if (is(what, "naps"))
        naps();
    else if (is(what, "nothing"))
        builds(1, 4);
    else if (is(what, "several"))
        lanes(2);
    else
        fail(__FILE__, __LINE__, what, 0);
    OK(clReleaseMemObject(large));
    OK(clReleaseMemObject(numbers));
    OK(clReleaseKernel(spin));
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(queue));
    dev_close(&d);
    free(host);
    expect_print();
    return 0;
}
