/* Threads that call, in every setting that once made a recorder lose them.
 *
 *   threads=N calls=K  N threads make K calls each
 *   pause=US           a sleep after each 25 calls
 *   order=together     all live at the same time: none calls before all have begun (default)
 *   order=sequence     one after the other
 *   main=join|exit     main waits, or ends by pthread_exit before the first worker calls
 *   limit=KIND:VALUE   set after the API was opened, before the threads begin:
 *                      umask, fsize, nofile
 *   files=N            N times: threads begin while main opens files until it may not; both
 *                      the least and the most that it got are printed
 *   report=memory      FIGURE vm_size_kib and vm_rss_kib at the end
 */
#include "torture.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

static pthread_barrier_t all_here;
static long threads, calls, pause_us;
static int together, reports_ready, reports_memory, main_left;
static long left;
static pthread_attr_t small_stack;

static void report_memory(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY);
    CHECK(fd >= 0);
    long n = read(fd, text, sizeof text - 1);
    CHECK(n > 0);
    close(fd);
    text[n] = 0;
    figure("vm_size_kib", strtoul(strstr(text, "VmSize:") + 7, NULL, 10));
    figure("vm_rss_kib", strtoul(strstr(text, "VmRSS:") + 6, NULL, 10));
}

static void finish(void)
{
    put("done\n", 5);
    board_print();
    if (reports_memory)
        report_memory();
}

static void *work(void *index)
{
    if (together)
        pthread_barrier_wait(&all_here);
    for (long i = 0; i < calls; i++) {
        api_call(i + (long)index);
        if (reports_ready && index == NULL && i == calls / 2)
            put("ready\n", 6);
        if (pause_us && i % 25 == 24)
            usleep(pause_us);
    }
    /* Whoever is last reports, and ends the process when main has left: an implementation's
     * own threads would keep it alive. */
    if (__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL) == 0) {
        finish();
        if (main_left)
            exit(7);
    }
    return NULL;
}

static void limit(const char *what)
{
    const char *value = strchr(what, ':') + 1;
    long n = strtol(value, NULL, 0);
    struct rlimit r = {n, n};
    if (strncmp(what, "umask", 5) == 0)
        umask(n);
    else if (strncmp(what, "fsize", 5) == 0)
        CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
    else if (strncmp(what, "nofile", 6) == 0)
        CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
    else
        fail(__FILE__, __LINE__, what, 0);
}

static void start(pthread_t *t, long i)
{
    CHECK(pthread_create(t, &small_stack, work, (void *)i) == 0);
}

/* As many as there are descriptors; then gives them back. */
static int open_all(void)
{
    int n = 0, fds[4096];
    while (n < 4096 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
        n++;
    CHECK(errno == EMFILE);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    return n;
}

/* The threads of each round make their first call while main takes all descriptors. */
static void take_files(long rounds)
{
    pthread_t *t = calloc(threads, sizeof *t);
    int least = 1 << 30, most = 0;
    left = threads * rounds + 1;
    pthread_barrier_init(&all_here, NULL, threads + 1);
    for (long r = 0; r < rounds; r++) {
        for (long i = 0; i < threads; i++)
            start(&t[i], i);
        pthread_barrier_wait(&all_here);
        for (int k = 0; k < 20; k++) {
            int n = open_all();
            least = n < least ? n : least;
            most = n > most ? n : most;
        }
        for (long i = 0; i < threads; i++)
            CHECK(pthread_join(t[i], NULL) == 0);
    }
    char line[64];
    put(line, snprintf(line, sizeof line, "opened %d to %d files\n", least, most));
    finish();
}

static void all_together(void)
{
    pthread_t *t = calloc(threads, sizeof *t);
    left = threads;
    pthread_barrier_init(&all_here, NULL, threads);
    for (long i = 0; i < threads; i++)
        start(&t[i], i);
    if (main_left)
        pthread_exit(NULL);
    for (long i = 0; i < threads; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

static void in_sequence(void)
{
    left = threads;
    for (long i = 0; i < threads; i++) {
        pthread_t t;
        start(&t, i);
        CHECK(pthread_join(t, NULL) == 0);
    }
}

int main(int argc, char **argv)
{
    threads = number(argc, argv, "threads", 4);
    calls = number(argc, argv, "calls", 100);
    pause_us = number(argc, argv, "pause", 0);
    together = strcmp(word(argc, argv, "order", "together"), "together") == 0;
    reports_ready = strcmp(word(argc, argv, "report", ""), "ready") == 0;
    reports_memory = strcmp(word(argc, argv, "report", ""), "memory") == 0;
    main_left = strcmp(word(argc, argv, "main", "join"), "exit") == 0;
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 256 << 10);
    board_make();
    api_open();
    if (word(argc, argv, "limit", NULL))
        limit(word(argc, argv, "limit", NULL));
    long files = number(argc, argv, "files", 0);
    if (files)
        take_files(files);
    else if (together)
        all_together();
    else
        in_sequence();
    return 7;
}
