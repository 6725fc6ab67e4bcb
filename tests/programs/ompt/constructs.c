/*
 * Uses OpenMP and counts what it uses: each line that it prints is the name of a construct and how often a thread came to
 * it, as the code says, not as a runtime reports it.
 *
 *   constructs regions     parallel regions, nested ones too, loops, sections, single, critical, locks, barriers
 *   constructs tasks       tasks with and without dependences, inside of each other, taskwait, taskgroup
 *   constructs fork        a child that has regions of its own, before and after
 *   constructs killed      is killed in a loop of a region
 *   constructs loop N      N parallel loops of 2 threads, for measurements
 *   constructs control     omp_control_tool, and what it returns
 */
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* GCC's omp.h has none. */
int omp_control_tool(int command, int modifier, void *argument);

static atomic_int parallels, members, loops, sections, singles, criticals, locks, barriers, tasks, taskwaits;
static volatile double sink;

static void region(int threads)
{
    parallels++;
    #pragma omp parallel num_threads(threads)
    {
        members++;
        loops++;
        #pragma omp for schedule(dynamic, 4) nowait
        for (int i = 0; i < 64; i++)
            sink += i;
        #pragma omp critical(one)
        criticals++;
        barriers++;
        #pragma omp barrier
    }
}

static void regions(void)
{
    omp_lock_t lock;
    omp_init_lock(&lock);
    for (int i = 0; i < 3; i++)
        region(4);
    parallels++;
    #pragma omp parallel num_threads(2)
    {
        members++;
        region(2);
        #pragma omp sections nowait
        {
            #pragma omp section
            sections++;
            #pragma omp section
            sections++;
        }
        #pragma omp single nowait
        singles++;
        omp_set_lock(&lock);
        locks++;
        omp_unset_lock(&lock);
        errno = 77;
        barriers++;
        #pragma omp barrier
        if (errno != 77)
            printf("errno is %d\n", errno);
    }
    omp_destroy_lock(&lock);
    printf("parallel %d\nmember %d\nloop %d\nsection %d\nsingle %d\ncritical %d\nlock %d\nbarrier %d\n", parallels, members,
           loops, sections, singles, criticals, locks, barriers);
}

static int tree(int depth)
{
    int left = 0, right = 0;
    if (depth == 0)
        return 1;
    #pragma omp task shared(left)
    {
        tasks++;
        left = tree(depth - 1);
    }
    #pragma omp task shared(right) if(depth > 2)
    {
        tasks++;
        right = tree(depth - 1);
    }
    taskwaits++;
    #pragma omp taskwait
    return left + right;
}

static void with_tasks(void)
{
    int value = 0, leaves = 0, chained = 0;
    #pragma omp parallel num_threads(3)
    #pragma omp single
    {
        for (int i = 0; i < 10; i++) {
            chained++;
            #pragma omp task depend(inout : value)
            {
                tasks++;
                value++;
            }
        }
        #pragma omp taskgroup
        leaves = tree(5);
    }
    printf("task %d\nchained %d\ntaskwait %d\nvalue %d\nleaves %d\n", tasks, chained, taskwaits, value, leaves);
}

static void forks(void)
{
    region(2);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        parallels = 0;
        for (int i = 0; i < 5; i++)
            region(2);
        printf("child %d\n", parallels);
        fflush(stdout);
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    region(2);
    printf("parent %d\nstatus %d\n", parallels, status);
}

static void killed(void)
{
    #pragma omp parallel num_threads(2)
    {
        #pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 2; i++)
            if (i == 0)
                kill(getpid(), SIGKILL);
    }
}

static void loop(int times)
{
    for (int i = 0; i < times; i++)
        region(2);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    omp_set_dynamic(0);
    omp_set_max_active_levels(4);
    if (!strcmp(what, "regions"))
        regions();
    else if (!strcmp(what, "tasks"))
        with_tasks();
    else if (!strcmp(what, "fork"))
        forks();
    else if (!strcmp(what, "killed"))
        killed();
    else if (!strcmp(what, "loop"))
        loop(count > 2 ? atoi(words[2]) : 1);
    else if (!strcmp(what, "control")) {
        region(2);
        printf("start %d\n", omp_control_tool(1, 0, NULL));
        region(2);
        region(2);
        printf("pause %d\n", omp_control_tool(2, 0, NULL));
        region(2);
    } else
        return 2;
    return 0;
}
