/* Probes in its code, as sys/sdt.h has them, written by hand: no header is needed to build it.
 *
 *   usdt HOW_OFTEN      passes them so often in the first thread and in a second, and once in a child
 *
 * Prints whether somebody listened to `guarded`.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where `semaphore` is a symbol or 0. Arguments: a signed number of 4 bytes in a register, one of 8 bytes in memory,
 * and a constant. */
#define PROBE(name, semaphore, small, large)                                                                  \
    __asm__ volatile("990: nop\n"                                                                             \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                                  \
                     ".4byte 992f-991f, 994f-993f, 3\n"                                                       \
                     "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                              \
                     "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                      \
                     ".asciz \"hetest\"\n.asciz \"" name "\"\n.asciz \"-4@%[a] 8@%[b] 2@" CONSTANT "513\"\n"  \
                     "994: .balign 4\n.popsection\n"                                                          \
                     ".ifndef _.stapsdt.base\n"                                                               \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                  \
                     ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                                         \
                     "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n"                \
                     :                                                                                        \
                     : [a] "r"(small), [b] "m"(large))

#ifdef __x86_64__
#define CONSTANT "$"
#else
#define CONSTANT ""
#endif

__attribute__((section(".probes"), used)) volatile unsigned short hetest_guarded_semaphore;

static void pass(int times)
{
    for (int i = 0; i < times; i++) {
        /* On the stack, and above the stack pointer: a function that calls nothing may have little below it. */
        volatile unsigned long room[64];
        room[0] = 0x100000000ul + i;
        int small = -(int)(i + 0 * getppid());
        PROBE("begin", "0", small, room[0]);
        if (hetest_guarded_semaphore)
            PROBE("guarded", "hetest_guarded_semaphore", small, room[0]);
        PROBE("end", "0", small, room[0]);
    }
}

static void *second(void *times)
{
    pass(*(int *)times);
    return NULL;
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t thread;
    printf("guarded: %s\n", hetest_guarded_semaphore ? "heard" : "unheard");
    fflush(stdout);
    pass(times);
    if (pthread_create(&thread, NULL, second, &times) || pthread_join(thread, NULL))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        pass(1);
        _exit(0);
    }
    int status;
    return waitpid(child, &status, 0) != child || status;
}
