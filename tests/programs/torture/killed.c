/* Processes that are killed in the middle of their calls, at random.
 *
 *   rounds=N children=C threads=T seed=S
 *
 * In each round C children call from T threads each until SIGKILL comes; every second one was
 * executed, so that some die while the API is being opened. What each had counted when it died
 * stands in memory that it shared with its parent.
 */
#include "torture.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MOST_MS = 40 };

static void *calls_until_killed(void *unused)
{
    for (unsigned i = 0;; i++) {
        api_call(i);
        /* Bursts: as many records as a ring takes, then time to be drained. */
        if (i % 256 == 255)
            usleep(500);
    }
    return unused;
}

static void victim(long threads)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    api_open();
    for (long i = 1; i < threads; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, calls_until_killed, NULL) == 0);
    }
    calls_until_killed(NULL);
}

static void one_round(char *self, long children, long threads)
{
    pid_t pids[64];
    char count[32];
    CHECK(children <= 64);
    snprintf(count, sizeof count, "%ld", threads);
    for (long i = 0; i < children; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            if (i % 2)
                execl("/proc/self/exe", self, "victim", count, (char *)NULL);
            slot_take();
            victim(threads);
        }
    }
    for (long left = children; left > 0; left--) {
        usleep(chance(MOST_MS * 1000));
        long i = chance(left);
        CHECK(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
        pids[i] = pids[left - 1];
        board->kills++;
    }
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "victim") == 0) {
        board_make();
        victim(atol(argv[2]));
    }
    chance_seed(number(argc, argv, "seed", 1));
    /* Memory that images that are executed can open, too. */
    int fd = memfd_create("board", 0);
    char text[32];
    CHECK(fd >= 0 && ftruncate(fd, sizeof(struct board)) == 0);
    snprintf(text, sizeof text, "%d", fd);
    setenv("TORTURE_BOARD", text, 1);
    board_make();
    long rounds = number(argc, argv, "rounds", 4);
    for (long i = 0; i < rounds; i++)
        one_round(argv[0], number(argc, argv, "children", 8), number(argc, argv, "threads", 3));
    put("done\n", 5);
    board_print();
    return 7;
}
