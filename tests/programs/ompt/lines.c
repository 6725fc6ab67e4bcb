/*
 * Uses one of each construct that says where it is. Behind each stands what a runtime reports of it: which line that is,
 * the test reads here. GCC's debug information has no line for a task, which gets that
 * of the statement before, and a loop's is that of its `for`.
 *
 *   lines                    does it itself
 *   lines dlopen LIBRARY     lets a library do it, which is this file too, and closes that
 *   lines remove PROGRAM     removes its own file before
 *   lines killed             is killed after it
 *   lines stuck              is killed while one of two threads waits for the other
 */
#include <dlfcn.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void solve(int rounds);

static volatile double sink;

static void relax(omp_lock_t *lock)
{
    for (int i = 0; i < 100; i++)
        sink += i;
    #pragma omp critical(one) /* ompt_acquire_critical */
    sink += 1;
    #pragma omp barrier /* ompt_wait_barrier_implementation */
    omp_set_lock(lock); /* ompt_acquire_lock */
    sink += 1;
    omp_unset_lock(lock);
}

void solve(int rounds)
{
    omp_lock_t lock;
    omp_init_lock(&lock);
    for (int round = 0; round < rounds; round++) {
        #pragma omp parallel num_threads(2) /* ompt_parallel_begin */
        {
            relax(&lock);
            #pragma omp for schedule(dynamic, 4) nowait
            for (int i = 0; i < 64; i++) /* ompt_loop_dynamic_begin */
                sink += i;
            sink += 1; _Pragma("omp task") sink += 2; /* ompt_task_create */
            #pragma omp taskwait /* ompt_wait_taskwait */
        }
    }
    omp_destroy_lock(&lock);
}

#ifndef LIBRARY
static int by_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void (*solve_there)(int) = library ? (void (*)(int))dlsym(library, "solve") : NULL;
    if (!solve_there)
        return 1;
    solve_there(3);
    return dlclose(library);
}

/* Whether a thread of this process sleeps. */
static int sleeps(int thread)
{
    char path[64], text[128] = "", *after;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    after = strrchr(text, ')');
    return after && after[1] && after[2] == 'S';
}

/* Nothing but the barrier lets the other thread sleep (KMP_BLOCKTIME=0). */
static void stuck(void)
{
    static volatile int other;
    #pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num()) {
            other = gettid();
        } else {
            while (!other || !sleeps(other))
                usleep(1000);
            kill(getpid(), SIGKILL);
        }
        #pragma omp barrier /* stuck here */
        other = 0; /* so that it is called, not jumped to */
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "dlopen") && argc > 2)
        return by_library(argv[2]);
    if (!strcmp(what, "remove") && (argc < 3 || unlink(argv[2])))
        return 1;
    if (!strcmp(what, "stuck"))
        stuck();
    solve(3);
    if (!strcmp(what, "killed"))
        kill(getpid(), SIGKILL);
    return 0;
}
#endif
