/* What the torture programs share: cheap calls of an API, counted in memory that outlives
 * whoever makes them, and the lines in which a program reports.
 *
 *     MADE pid=N begun=B returned=R threads=T
 *     FIGURE name=value
 *
 * `begun` counts calls before they are made, `returned` after; they differ by the calls that a
 * SIGKILL or a siglongjmp cut short. One line for each process, written by whoever is left at
 * the end; several lines of one pid add up. All else on stdout must be as without a tracer.
 *
 * With TORTURE_CUDA the same programs call a CUDA driver; with TORTURE_OPENED they open
 * OpenCL's loader themselves.
 */
#ifndef HETRACE_TORTURE_H
#define HETRACE_TORTURE_H

#if defined TORTURE_CUDA || defined TORTURE_OPENED
#define NO_LINKED_OPENCL
#endif
#include "../cl_util.h"
#include <sys/mman.h>
#ifdef TORTURE_CUDA
#include "../cuda/fake_cuda.h"
#endif

/* ---- counting ---------------------------------------------------------------- */

enum { SLOTS = 8192 };

struct slot {
    long pid;
    unsigned long begun, returned, threads;
};

static struct board {
    unsigned used;
    unsigned long kills, jumps;
    struct slot slots[SLOTS];
} *board;
static struct slot *mine;
static __thread int counted_thread;

/* The calling process counts in a slot of its own from here on. */
static inline void slot_take(void)
{
    unsigned i = __atomic_fetch_add(&board->used, 1, __ATOMIC_RELAXED);
    CHECK(i < SLOTS);
    mine = &board->slots[i];
    mine->pid = getpid();
    counted_thread = 0;
}

/* Memory that children share. Images that are executed find it by TORTURE_BOARD. */
static inline void board_make(void)
{
    const char *inherited = getenv("TORTURE_BOARD");
    int fd = inherited ? atoi(inherited) : -1;
    int flags = MAP_SHARED | (inherited ? 0 : MAP_ANONYMOUS);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, flags, fd, 0);
    CHECK(board != MAP_FAILED);
    slot_take();
}

#define COUNT(member, n) __atomic_fetch_add(&(member), (n), __ATOMIC_RELAXED)

/* One write each: programs with a system call filter report, too. */
static inline void put(const char *line, int length)
{
    if (write(STDOUT_FILENO, line, length) != length)
        _exit(99);
}

static inline void figure(const char *name, unsigned long value)
{
    char line[128];
    put(line, snprintf(line, sizeof line, "FIGURE %s=%lu\n", name, value));
}

static inline void slot_print(const struct slot *s)
{
    char line[256];
    put(line, snprintf(line, sizeof line, "MADE pid=%ld begun=%lu returned=%lu threads=%lu\n", s->pid,
                       s->begun, s->returned, s->threads));
}

static inline void board_print(void)
{
    for (unsigned i = 0; i < board->used; i++)
        slot_print(&board->slots[i]);
    if (board->kills)
        figure("kills", board->kills);
    if (board->jumps)
        figure("jumps", board->jumps);
    const char *session = getenv("HETRACE_SESSION");
    char line[600];
    if (session)
        put(line, snprintf(line, sizeof line, "FIGURE session=%s\n", session));
}

/* ---- calls ------------------------------------------------------------------- */

/* A call, whatever it returns: what is tested is whether it is recorded. */
#define CALL(call)                                \
    do {                                          \
        COUNT(mine->begun, 1);                    \
        (void)(call);                             \
        COUNT(mine->returned, 1);                 \
    } while (0)

static inline void thread_count(void)
{
    if (!counted_thread) {
        counted_thread = 1;
        COUNT(mine->threads, 1);
    }
}

#ifdef TORTURE_CUDA

extern CUresult cuInit(unsigned);
extern CUresult cuDriverGetVersion(int *);
extern CUresult cuDeviceGetCount(int *);
extern CUresult cuDeviceGet(CUdevice *, int);
extern CUresult cuDeviceGetName(char *, int, CUdevice);
extern CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);

/* A context on each device: the tracer has its hands full with three of them. */
static inline void api_open(void)
{
    int devices = 0;
    thread_count();
    CALL(cuInit(0));
    CALL(cuDeviceGetCount(&devices));
    for (int i = 0; i < devices; i++) {
        CUdevice device;
        CUcontext context;
        CALL(cuDeviceGet(&device, i));
        CALL(cuCtxCreate_v2(&context, 0, device));
    }
}

/* None of them takes a lock of the driver's: a handler may jump out of each. */
static inline void api_call(unsigned i)
{
    int number;
    char name[64];
    thread_count();
    switch (i % 3) {
    case 0: CALL(cuDriverGetVersion(&number)); break;
    case 1: CALL(cuDeviceGetCount(&number)); break;
    default: CALL(cuDeviceGetName(name, sizeof name, i % 2)); break;
    }
}

#else

#ifdef TORTURE_OPENED
#include <dlfcn.h>

/* Functions by address, under the names that the calls below have. */
static __typeof__(&clGetPlatformIDs) p_clGetPlatformIDs;
static __typeof__(&clGetPlatformInfo) p_clGetPlatformInfo;
static __typeof__(&clGetDeviceIDs) p_clGetDeviceIDs;
static __typeof__(&clGetDeviceInfo) p_clGetDeviceInfo;
#define clGetPlatformIDs p_clGetPlatformIDs
#define clGetPlatformInfo p_clGetPlatformInfo
#define clGetDeviceIDs p_clGetDeviceIDs
#define clGetDeviceInfo p_clGetDeviceInfo

static inline void api_find(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    CHECK(library != NULL);
    CHECK((p_clGetPlatformIDs = dlsym(library, "clGetPlatformIDs")) != NULL);
    CHECK((p_clGetPlatformInfo = dlsym(library, "clGetPlatformInfo")) != NULL);
    CHECK((p_clGetDeviceIDs = dlsym(library, "clGetDeviceIDs")) != NULL);
    CHECK((p_clGetDeviceInfo = dlsym(library, "clGetDeviceInfo")) != NULL);
}
#else
static inline void api_find(void)
{
}
#endif

static struct {
    cl_platform_id platform;
    cl_device_id device;
} opened;

static inline void api_open(void)
{
    api_find();
    thread_count();
    CALL(clGetPlatformIDs(1, &opened.platform, NULL));
    CALL(clGetDeviceIDs(opened.platform, CL_DEVICE_TYPE_ALL, 1, &opened.device, NULL));
}

/* None of them takes a lock: a handler may jump out of each. */
static inline void api_call(unsigned i)
{
    cl_uint number;
    char name[64];
    thread_count();
    switch (i % 3) {
    case 0: CALL(clGetPlatformIDs(0, NULL, &number)); break;
    case 1:
        CALL(clGetDeviceInfo(opened.device, CL_DEVICE_VENDOR_ID, sizeof number, &number, NULL));
        break;
    default:
        CALL(clGetPlatformInfo(opened.platform, CL_PLATFORM_VENDOR, sizeof name, name, NULL));
        break;
    }
}

#endif

/* ---- arguments and chance ----------------------------------------------------- */

/* The value of an argument `name=value`. */
static inline const char *word(int argc, char **argv, const char *name, const char *otherwise)
{
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    return otherwise;
}

static inline long number(int argc, char **argv, const char *name, long otherwise)
{
    const char *text = word(argc, argv, name, NULL);
    return text ? strtol(text, NULL, 0) : otherwise;
}

/* xorshift: the same seed, the same choices. */
static unsigned long chance_state = 88172645463325252ul;

static inline void chance_seed(unsigned long seed)
{
    chance_state ^= seed * 0x9e3779b97f4a7c15ul;
}

static inline unsigned long chance(unsigned long below)
{
    chance_state ^= chance_state << 13;
    chance_state ^= chance_state >> 7;
    chance_state ^= chance_state << 17;
    return chance_state % below;
}

#endif
