// What samples of processors are tested with: work in a function that is found by its name only if stacks are unwound
// without frame pointers, in a thread and in a child, and a call that takes time.
//
//     samples MODE
//
// MODE: `work` (functions), `threads` (the same in threads that come and go), `child` (in a child that executes this
// program again), `call` (in clGetPlatformIDs's callers and in a spin of the program), `system` (in system calls).
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CL/cl.h>

// Time on a CPU that each part takes: enough for samples whatever else the machine does.
#define WORK_NS 400000000L

static volatile unsigned long sink;

static long spent(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) static unsigned long hot(unsigned long seed) {
    char room[512];
    memset(room, (int)seed, sizeof room);
    for (int i = 0; i < 2000000; i++) seed = seed * 6364136223846793005UL + (unsigned char)room[seed % sizeof room];
    return seed;
}

__attribute__((noinline)) static unsigned long middle(unsigned long seed, int depth) {
    unsigned long sum = depth > 0 ? middle(seed, depth - 1) : hot(seed);
    sink += sum;
    return sum + 1;
}

__attribute__((noinline)) static void work(void) {
    long begin = spent();
    while (spent() - begin < WORK_NS) sink += middle(sink, 5) + 1;
}

__attribute__((noinline)) static void calls(void) {
    long begin = spent();
    while (spent() - begin < WORK_NS) write(-1, "", 0);
}

static void *thread(void *unused) {
    work();
    return unused;
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "work";
    cl_uint platforms = 0;
    clGetPlatformIDs(0, NULL, &platforms);
    if (!strcmp(mode, "threads")) {
        for (int i = 0; i < 3; i++) {
            pthread_t one;
            if (pthread_create(&one, NULL, thread, NULL)) return 1;
            pthread_join(one, NULL);
        }
    } else if (!strcmp(mode, "child")) {
        pid_t child = fork();
        if (child == 0) {
            execl(words[0], words[0], "work", (char *)NULL);
            _exit(127);
        }
        int status = 1;
        waitpid(child, &status, 0);
        return status != 0;
    } else if (!strcmp(mode, "system")) {
        calls();
    } else {
        work();
    }
    clGetPlatformIDs(0, NULL, &platforms);
    return 0;
}
