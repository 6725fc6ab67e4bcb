/* Does what its arguments say, one after the other: for recorders that are on for a part of it.
 *
 *   launch:N       N launches of the kernel `addone`, and a wait for them
 *   push:NAME:N    N ranges of NVTX of that name, pushed one after the other, each with 5 launches and a wait
 *   start:NAME:N   the same with ranges that are started and ended
 *   open:NAME      pushes a range; close: pops the last one
 *   wait:FILE      waits until there is such a file
 *   touch:FILE     makes one
 *   alloc:N        N buffers, which stay
 *   free           releases them
 *   threads:K      the rest of the arguments on K threads, each with a queue of its own, and then the end
 *   children:K     the rest in K processes that are begun anew, and then the end
 *   fork           a child that pops a range and ends one by hand, and a wait for it
 *   held:N         N launches while another thread waits for an event, which is set behind them
 *   block:FILE     another thread waits for an event until there is such a file
 *   hang           another thread waits for an event that never comes
 *   wrong:N        N launches that fail
 *   enqueue:N      N launches behind an event that never comes
 *   spin:FILE      launches until there is such a file
 *   noise:N        overwrites, N times and with launches in between, all that the tracer has mapped here shared and
 *                  writable; SPRAYED says how much. What is mapped for reading can't be made writable
 *   kill           the end by SIGKILL
 *   crash          the end by SIGSEGV
 *   fail           the end with status 3
 *
 * Writes how many kernels it launched in each process: LAUNCHED pid=N n.
 */
#include "cl_util.h"
#include "nvtx_client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char *const source = "kernel void addone(global int *p) { p[get_global_id(0)] += 1; }\n";

enum { MOST = 256 };

static struct dev dev;
static cl_program program;
static unsigned long launched;

struct worker {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem memory;
    cl_mem kept[MOST];
    int count;
    char **script;
};

static void begin(struct worker *w)
{
    w->queue = MAKE(clCreateCommandQueue(dev.context, dev.device, 0, &err));
    w->kernel = MAKE(clCreateKernel(program, "addone", &err));
    w->memory = MAKE(clCreateBuffer(dev.context, CL_MEM_READ_WRITE, 4096, NULL, &err));
    OK(clSetKernelArg(w->kernel, 0, sizeof w->memory, &w->memory));
    w->count = 0;
}

static void launch(struct worker *w, long n)
{
    const size_t items = 16;
    for (long i = 0; i < n; i++) {
        OK(clEnqueueNDRangeKernel(w->queue, w->kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        __atomic_fetch_add(&launched, 1, __ATOMIC_RELAXED);
        if (i % 64 == 63)
            OK(clFinish(w->queue));
    }
    OK(clFinish(w->queue));
}

static void ranges(struct worker *w, char *name, int pushed)
{
    char *colon = strchr(name, ':');
    *colon = 0;
    for (long i = atol(colon + 1); i > 0; i--) {
        nvtxRangeId_t id = 0;
        if (pushed)
            nvtxRangePushA(name);
        else
            id = nvtxRangeStartA(name);
        launch(w, 5);
        if (pushed)
            nvtxRangePop();
        else
            nvtxRangeEnd(id);
    }
    *colon = ':';
}

static void print_launched(void)
{
    char line[80];
    int n = snprintf(line, sizeof line, "LAUNCHED pid=%ld %lu\n", (long)getpid(), launched);
    CHECK(write(1, line, n) == n);
}

static void *waits(void *event)
{
    OK(clWaitForEvents(1, (cl_event *)event));
    return NULL;
}

/* The wait begins before the launches, or so early that it does not matter, and ends behind them. */
static void held(struct worker *w, long n)
{
    cl_event event = MAKE(clCreateUserEvent(dev.context, &err));
    pthread_t waiting;
    CHECK(pthread_create(&waiting, NULL, waits, &event) == 0);
    usleep(20000);
    launch(w, n);
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    pthread_join(waiting, NULL);
    OK(clReleaseEvent(event));
}

static void block(const char *file)
{
    cl_event event = MAKE(clCreateUserEvent(dev.context, &err));
    pthread_t waiting;
    CHECK(pthread_create(&waiting, NULL, waits, &event) == 0);
    while (access(file, F_OK) != 0)
        usleep(1000);
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    pthread_join(waiting, NULL);
    OK(clReleaseEvent(event));
}

static long hanging;

static void *hangs(void *event)
{
    __atomic_store_n(&hanging, syscall(SYS_gettid), __ATOMIC_RELEASE);
    return waits(event);
}

static int sleeps(long thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
    FILE *file = fopen(path, "r");
    CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
    fclose(file);
    return state == 'S';
}

/* Goes on when the other thread has slept for a while: it is in the call then, however busy the machine is. Both live
 * until the program ends. */
static void hang(void)
{
    static cl_event event;
    event = MAKE(clCreateUserEvent(dev.context, &err));
    pthread_t waiting;
    CHECK(pthread_create(&waiting, NULL, hangs, &event) == 0);
    long thread;
    while ((thread = __atomic_load_n(&hanging, __ATOMIC_ACQUIRE)) == 0)
        usleep(1000);
    for (int slept = 0; slept < 50; slept = sleeps(thread) ? slept + 1 : 0)
        usleep(1000);
}

static void wrong(struct worker *w, long n)
{
    const size_t items = 16;
    for (long i = 0; i < n; i++)
        CHECK(clEnqueueNDRangeKernel(w->queue, w->kernel, 0, NULL, &items, NULL, 0, NULL, NULL) == CL_INVALID_WORK_DIMENSION);
}

static void enqueue(struct worker *w, long n)
{
    const size_t items = 16;
    cl_event event = MAKE(clCreateUserEvent(dev.context, &err));
    for (long i = 0; i < n; i++)
        OK(clEnqueueNDRangeKernel(w->queue, w->kernel, 1, NULL, &items, NULL, 1, &event, NULL));
    OK(clFlush(w->queue));
}

/* How much of a mapping is overwritten: an arena is a sparse file of 256 MiB. */
enum { SPRAYED = 4 << 20, MAPPINGS = 256 };

static void spray(unsigned char *at, size_t length, long round)
{
    static unsigned long state = 88172645463325252ul;
    for (size_t i = 0; i + 8 <= length; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        unsigned long noise[] = {state, 0, ~0ul, state % 8};
        memcpy(at + i, &noise[round % 4], 8);
    }
}

static void make_noise(struct worker *w, long n)
{
    struct { unsigned char *from, *to; char kind[5], name[32]; } all[MAPPINGS];
    unsigned long bytes = 0, reported = 0, arenas = 0, fixed = 0;
    for (long round = 0; round < n; round++) {
        FILE *maps = fopen("/proc/self/maps", "r");
        char line[4352], path[4096];
        int count = 0;
        CHECK(maps);
        while (fgets(line, sizeof line, maps) && count < MAPPINGS) {
            void *from, *to;
            char kind[5];
            if (sscanf(line, "%p-%p %4s %*s %*s %*s %4095s", &from, &to, kind, path) != 4 || !strstr(path, "/hetrace-"))
                continue;
            all[count].from = from;
            all[count].to = to;
            strcpy(all[count].kind, kind);
            snprintf(all[count].name, sizeof all->name, "%.31s", strrchr(path, '/') + 1);
            count++;
        }
        fclose(maps);
        for (int i = 0; i < count; i++) {
            size_t length = all[i].to - all[i].from;
            if (all[i].kind[1] != 'w') {
                if (strcmp(all[i].name, "control") == 0) {
                    CHECK(mprotect(all[i].from, length, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
                    fixed++;
                }
                continue;
            }
            length = length < SPRAYED ? length : SPRAYED;
            spray(all[i].from, length, round);
            bytes += length;
            reported += strcmp(all[i].name, "reported") == 0;
            arenas += strncmp(all[i].name, "arena-", 6) == 0;
        }
        launch(w, 20);
    }
    printf("SPRAYED %lu reported=%lu arenas=%lu fixed=%lu\n", bytes, reported, arenas, fixed);
    fflush(stdout);
}

static void do_all(struct worker *w, char **script);

static void *on_thread(void *at)
{
    struct worker w;
    begin(&w);
    do_all(&w, at);
    return NULL;
}

static void do_threads(int n, char **script)
{
    pthread_t threads[16];
    CHECK(n <= 16);
    for (int i = 0; i < n; i++)
        CHECK(pthread_create(&threads[i], NULL, on_thread, script) == 0);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void do_children(int n, char **script)
{
    char *arguments[MOST + 2] = {"/proc/self/exe"};
    for (int i = 0; i < MOST && script[i]; i++)
        arguments[i + 1] = script[i];
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            execv(arguments[0], arguments);
            _exit(99);
        }
    for (int i = 0, status; i < n; i++)
        CHECK(wait(&status) > 0 && status == 0);
}

static void do_fork(void)
{
    nvtxRangeId_t id = nvtxRangeStartA("step");
    pid_t child = fork();
    if (child == 0) {
        nvtxRangePop();
        nvtxRangeEnd(id);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    nvtxRangeEnd(id);
}

static void do_all(struct worker *w, char **script)
{
    for (; *script; script++) {
        char *word = *script, *of = strchr(word, ':');
        of = of ? of + 1 : word + strlen(word);
        if (!strncmp(word, "launch:", 7))
            launch(w, atol(of));
        else if (!strncmp(word, "push:", 5))
            ranges(w, of, 1);
        else if (!strncmp(word, "start:", 6))
            ranges(w, of, 0);
        else if (!strncmp(word, "open:", 5))
            nvtxRangePushA(of);
        else if (!strcmp(word, "close"))
            nvtxRangePop();
        else if (!strncmp(word, "wait:", 5))
            while (access(of, F_OK) != 0)
                usleep(1000);
        else if (!strncmp(word, "touch:", 6))
            close(open(of, O_CREAT | O_WRONLY, 0600));
        else if (!strncmp(word, "alloc:", 6))
            for (long i = atol(of); i > 0 && w->count < MOST; i--)
                w->kept[w->count++] = MAKE(clCreateBuffer(dev.context, CL_MEM_READ_WRITE, 1 << 16, NULL, &err));
        else if (!strcmp(word, "free"))
            while (w->count > 0)
                OK(clReleaseMemObject(w->kept[--w->count]));
        else if (!strncmp(word, "threads:", 8)) {
            do_threads(atoi(of), script + 1);
            return;
        } else if (!strncmp(word, "children:", 9)) {
            do_children(atoi(of), script + 1);
            return;
        } else if (!strncmp(word, "held:", 5))
            held(w, atol(of));
        else if (!strcmp(word, "fork"))
            do_fork();
        else if (!strncmp(word, "block:", 6))
            block(of);
        else if (!strcmp(word, "hang"))
            hang();
        else if (!strncmp(word, "enqueue:", 8))
            enqueue(w, atol(of));
        else if (!strncmp(word, "wrong:", 6))
            wrong(w, atol(of));
        else if (!strncmp(word, "spin:", 5))
            while (access(of, F_OK) != 0) {
                launch(w, 8);
                usleep(1000);
            }
        else if (!strncmp(word, "noise:", 6))
            make_noise(w, atol(of));
        else if (!strcmp(word, "kill"))
            kill(getpid(), SIGKILL);
        else if (!strcmp(word, "crash")) {
            /* The runtime may have a handler for its kernels' faults. */
            signal(SIGSEGV, SIG_DFL);
            raise(SIGSEGV);
        }
        else if (!strcmp(word, "fail"))
            exit(3);
        else
            CHECK(!"a word that it knows");
    }
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    struct worker w;
    /* Children begin with devices of their own, and not with those of this one. */
    if (!strncmp(argv[1], "children:", 9)) {
        do_all(&w, argv + 1);
        return 0;
    }
    dev = dev_open();
    program = build(&dev, source, "");
    begin(&w);
    do_all(&w, argv + 1);
    print_launched();
    return 0;
}
