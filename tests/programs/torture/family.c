/* Processes that come from others without exec, and those that share memory with them.
 *
 *   mode=fork       children, eight at a time, while the parent's threads go on calling; each
 *                   child starts threads of its own
 *   mode=vfork      children that call on the parent's memory, then _exit
 *   mode=clone      clone(CLONE_VM) without CLONE_SETTLS: children that share memory and
 *                   thread-local storage with a parent that calls at the same time
 *   children=N threads=T calls=K
 */
#include "torture.h"
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

enum { AT_ONCE = 8, STACK = 256 << 10 };

static long children, threads, calls;
static int stop;

static void *work(void *index)
{
    for (long i = 0; i < calls; i++)
        api_call(i + (long)index);
    return NULL;
}

static void *goes_on(void *unused)
{
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        api_call(i);
        usleep(20);
    }
    return unused;
}

static void with_threads(void)
{
    pthread_t t[64];
    CHECK(threads <= 64);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
    work(NULL);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

static void await(pid_t pid, int flags)
{
    int status;
    CHECK(waitpid(pid, &status, flags) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forks(void)
{
    pthread_t other;
    CHECK(pthread_create(&other, NULL, goes_on, NULL) == 0);
    for (long i = 0; i < children; i += AT_ONCE) {
        pid_t pids[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) {
            pids[k] = fork();
            CHECK(pids[k] >= 0);
            if (pids[k] == 0) {
                slot_take();
                with_threads();
                _exit(0);
            }
            api_call(k);
        }
        for (int k = 0; k < AT_ONCE; k++)
            await(pids[k], 0);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(other, NULL) == 0);
}

static void vforks(void)
{
    for (volatile long i = 0; i < children; i++) {
        pid_t pid = vfork();
        CHECK(pid >= 0);
        if (pid == 0) {
            work((void *)i);
            _exit(0);
        }
        api_call(i);
        await(pid, 0);
    }
}

static int shares_all(void *index)
{
    work(index);
    return 0;
}

static void clones(void)
{
    char *stacks = mmap(NULL, AT_ONCE * STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(stacks != MAP_FAILED);
    for (long i = 0; i < children; i += AT_ONCE) {
        pid_t pids[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) {
            char *top = stacks + (k + 1) * STACK;
            pids[k] = clone(shares_all, top, CLONE_VM | SIGCHLD, (void *)(long)k);
            CHECK(pids[k] > 0);
        }
        work(NULL);
        for (int k = 0; k < AT_ONCE; k++)
            await(pids[k], 0);
    }
}

int main(int argc, char **argv)
{
    const char *mode = word(argc, argv, "mode", "fork");
    children = number(argc, argv, "children", 16);
    threads = number(argc, argv, "threads", 2);
    calls = number(argc, argv, "calls", 200);
    board_make();
    api_open();
    if (strcmp(mode, "fork") == 0)
        forks();
    else if (strcmp(mode, "vfork") == 0)
        vforks();
    else
        clones();
    put("done\n", 5);
    board_print();
    return 7;
}
