// Calls an OpenCL function from stacks of many kinds, each with a number of its own, and writes what the C library finds on
// the stack at that time: `NUMBER KIND module+offset ...`, where an offset is a return address.
//
// Kinds: `all` (the C library finds all of it), `cut` (it is very deep), `open` (code without an unwind table is on it, which
// has a frame pointer), `lost` (that has none).
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static FILE *reported;
static unsigned number = 1;
static const char *kind = "all";

static void report(void **frames, int count) {
    fprintf(reported, "%u %s", number, kind);
    for (int i = 0; i < count; i++) {
        Dl_info info;
        struct link_map *map;
        if (!dladdr1(frames[i], &info, (void **)&map, RTLD_DL_LINKMAP)) {
            fprintf(reported, " ?+0x%lx", (unsigned long)frames[i]);
            continue;
        }
        const char *name = strrchr(info.dli_fname, '/');
        unsigned long offset = (unsigned long)frames[i] - map->l_addr;
        fprintf(reported, " %s+0x%lx", name ? name + 1 : info.dli_fname, offset);
    }
    fputc('\n', reported);
}

__attribute__((noinline)) void call(void) {
    void *frames[2000];
    report(frames, backtrace(frames, 2000));
    cl_uint count;
    // It fails, as it has a number and no room.
    clGetPlatformIDs(number++, NULL, &count);
}

__attribute__((noinline)) int recurse(int depth) {
    if (depth == 0) {
        call();
        return 1;
    }
    return recurse(depth - 1) + 1;
}

// A frame of a size that only running shows.
__attribute__((noinline)) int variable(int bytes) {
    volatile char *room = alloca(bytes);
    room[bytes - 1] = 1;
    call();
    return room[bytes - 1];
}

// A frame that is aligned more than the stack is.
__attribute__((noinline)) int aligned(int bytes) {
    volatile char room[128] __attribute__((aligned(128)));
    volatile char *more = alloca(bytes);
    room[5] = more[0] = 1;
    call();
    return room[5] + more[0];
}

static int compare(const void *one, const void *other) {
    call();
    return *(const int *)one - *(const int *)other;
}

static void *thread(void *depth) {
    recurse((int)(long)depth);
    return NULL;
}

static void handler(int signal) {
    (void)signal;
    call();
}

static void handle(int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static ucontext_t outer, inner;

static void coroutine(void) {
    recurse(3);
    swapcontext(&inner, &outer);
}

static void on_another_stack(void) {
    size_t bytes = 1 << 16;
    char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&inner);
    inner.uc_stack.ss_sp = room;
    inner.uc_stack.ss_size = bytes;
    inner.uc_link = &outer;
    makecontext(&inner, coroutine, 0);
    swapcontext(&outer, &inner);
    munmap(room, bytes);
}

// Code that nobody has a table of.
static void made(const unsigned char *code, size_t bytes, const char *as) {
    void *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(room, code, bytes);
    kind = as;
    ((void (*)(void (*)(void)))room)(call);
    kind = "all";
    munmap(room, 4096);
}

// Neither of them is ever released.
__attribute__((noinline)) void leak(void) {
    cl_context context = clCreateContextFromType(NULL, CL_DEVICE_TYPE_ALL, NULL, NULL, NULL);
    clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, NULL);
}

int main(int count, char **arguments) {
    reported = fopen(arguments[count - 1], "w");
    void *frames[1];
    backtrace(frames, 1);
    for (int i = 0; i < 3; i++)
        recurse(i * 10);
    int sum = variable(100) + variable(20000) + aligned(40) + aligned(4000);
    int numbers[] = {4, 2, 3, 1};
    qsort(numbers, 4, sizeof *numbers, compare);
    pthread_t other;
    pthread_create(&other, NULL, thread, (void *)20);
    pthread_join(other, NULL);
    handle(0);
    stack_t signals = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&signals, NULL);
    handle(SA_ONSTACK);
    on_another_stack();
    kind = "cut";
    recurse(1500);
    // push rbp; mov rbp, rsp; call rdi; pop rbp; ret
    static const unsigned char keeps[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    made(keeps, sizeof keeps, "open");
    // push rbp; mov rbp, 16; call rdi; pop rbp; ret
    static const unsigned char spoils[] = {0x55, 0x48, 0xc7, 0xc5, 16, 0, 0, 0, 0xff, 0xd7, 0x5d, 0xc3};
    made(spoils, sizeof spoils, "lost");
    recurse(sum & 1);
    leak();
    return fclose(reported);
}
