/* System call filters that kill, installed after the API was opened: what the bare program
 * calls afterwards is allowed, with futex and madvise beside it, and nothing else.
 *
 *   phase=first   a thread that exists already makes its first call
 *   phase=ring    threads that are created afterwards record
 *   phase=grow    a thread that has recorded makes so many calls at once that its ring is full
 *   threads=N calls=K
 *
 * The lists were made by strace of the bare program. A C library may get the time without a
 * system call or with one: it may here.
 */
#include "torture.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int ALWAYS[] = {SYS_write, SYS_exit, SYS_exit_group, SYS_futex, SYS_madvise,
                             SYS_clock_gettime, SYS_sched_yield, SYS_rt_sigprocmask,
                             /* of a thread that has been created, and begins when the filter is there */
                             SYS_set_robust_list, SYS_rseq};
/* What pthread_create and the end of a thread need. */
static const int THREADS[] = {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_clone, SYS_clone3};

static void install(int threads_too)
{
    enum { MOST = 64 };
    struct sock_filter code[MOST];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    const int *lists[] = {ALWAYS, THREADS};
    size_t lengths[] = {sizeof ALWAYS / sizeof *ALWAYS, sizeof THREADS / sizeof *THREADS};
    for (int list = 0; list <= threads_too; list++)
        for (size_t i = 0; i < lengths[list]; i++) {
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, lists[list][i], 0, 1);
            code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {n, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* All threads at once, those that exist and those to come. */
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

static long calls;
static pthread_barrier_t filtered;

static void *work(void *index)
{
    for (long i = 0; i < calls; i++)
        api_call(i + (long)index);
    return NULL;
}

static void *waits(void *index)
{
    /* Once before the filter, when the C library has started the thread; once after it. */
    pthread_barrier_wait(&filtered);
    pthread_barrier_wait(&filtered);
    return work(index);
}

static void run(long threads, void *(*body)(void *), int install_between, int threads_too)
{
    pthread_t t[256];
    CHECK(threads <= 256);
    pthread_barrier_init(&filtered, NULL, threads + 1);
    if (!install_between)
        install(threads_too);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&t[i], NULL, body, (void *)i) == 0);
    if (install_between) {
        pthread_barrier_wait(&filtered);
        install(threads_too);
        pthread_barrier_wait(&filtered);
    }
    for (long i = 0; i < threads; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    const char *phase = word(argc, argv, "phase", "first");
    long threads = number(argc, argv, "threads", 4);
    calls = number(argc, argv, "calls", 100);
    board_make();
    api_open();
    for (int i = 0; i < 10; i++)
        api_call(i);
    if (strcmp(phase, "first") == 0) {
        run(threads, waits, 1, 0);
    } else if (strcmp(phase, "ring") == 0) {
        run(threads, work, 0, 1);
    } else {
        install(0);
        work(NULL);
    }
    put("done\n", 5);
    board_print();
    _exit(7);
}
