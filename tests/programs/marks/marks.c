/* Ranges, marks and names by include/hetrace.h. What is done is said by the first argument. It is C99 and C++. Prints what it saw of itself, so that a traced run can be held against a bare one. */
#include "hetrace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static hetrace_range handed_over;

static void *ends_it(void *name) {
    hetrace_name_thread((const char *)name);
    hetrace_push("inner of a thread");
    hetrace_pop();
    hetrace_end(handed_over);
    return 0;
}

static void everything(void) {
    pthread_t thread;
    errno = 4711;
    hetrace_name_thread("the main one");
    hetrace_push("outer");
    hetrace_push("inner");
    hetrace_mark("a moment", 17);
    hetrace_pop();
    handed_over = hetrace_start("handed over");
    if (pthread_create(&thread, 0, ends_it, (void *)"the other one") != 0) abort();
    pthread_join(thread, 0);
    hetrace_pop();
    hetrace_mark(0, ~UINT64_C(0));
    hetrace_snapshot();
    printf("errno %d\n", errno);
}

/* Ends of what was not begun, beginnings without an end, texts of any size. */
static void wrongly(void) {
    size_t size = 3 << 20;
    char *huge = (char *)malloc(size);
    if (!huge) abort();
    memset(huge, 'h', size - 1);
    huge[size - 1] = 0;
    hetrace_pop();
    hetrace_end(0);
    hetrace_end(123456789);
    hetrace_push(huge);
    hetrace_pop();
    hetrace_pop();
    hetrace_mark("\xff\xfe not UTF-8", 1);
    hetrace_name_thread(huge);
    hetrace_push("left open");
    hetrace_start("left open, too");
    free(huge);
}

static void *pushes(void *unused) {
    int i;
    for (i = 0; i < 1000; i++) {
        hetrace_push("of many");
        hetrace_mark("of many", (uint64_t)i);
        hetrace_pop();
    }
    return unused;
}

/* Threads whose first calls come at once. */
static void threads(void) {
    pthread_t all[8];
    int i;
    for (i = 0; i < 8; i++)
        if (pthread_create(&all[i], 0, pushes, 0) != 0) abort();
    for (i = 0; i < 8; i++) pthread_join(all[i], 0);
}

static void forks(void) {
    int status = 0;
    pid_t child;
    hetrace_push("parent");
    child = fork();
    if (child == 0) {
        hetrace_push("child");
        hetrace_pop();
        _exit(hetrace_is_traced());
    }
    if (waitpid(child, &status, 0) != child) abort();
    hetrace_pop();
    printf("child %d\n", WEXITSTATUS(status));
}

/* Three windows: of the marks those between start and stop are recorded. */
static void captures(void) {
    uint64_t i;
    for (i = 0; i < 6; i++) {
        if (i % 2) hetrace_capture_start(); else hetrace_capture_stop();
        if (i % 2) hetrace_capture_start();
        hetrace_push(i % 2 ? "inside" : "outside");
        hetrace_mark(i % 2 ? "mark inside" : "mark outside", i);
        hetrace_pop();
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "everything";
    if (!strcmp(what, "everything")) everything();
    else if (!strcmp(what, "wrongly")) wrongly();
    else if (!strcmp(what, "threads")) threads();
    else if (!strcmp(what, "forks")) forks();
    else if (!strcmp(what, "captures")) captures();
    else return 2;
    printf("%s\n", hetrace_is_traced() ? "traced" : "not traced");
    return 0;
}
