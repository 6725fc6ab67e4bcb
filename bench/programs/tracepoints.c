/* What it costs at the least to record switches: a round trip of two processes on one processor that wake each other
 * over pipes, while programs in the kernel run at the tracepoints of a switch and of both wake-ups. Needs root.
 *
 *   tracepoints [ROUNDS [TRIPS]]
 *
 * In turn: none; programs that return at once; that take the time; that write 56 bytes and the time into a ring buffer of
 * BPF's, which another process empties; into an array. Nothing of hetrace is in it.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NONE, EMPTY, TIME, RING, ARRAY, VARIANTS, MOST = 100, RING_BYTES = 8 << 20, ARRAY_BYTES = 2 << 20 };
enum { KTIME = 5, CPU = 8, CURRENT = 14, RESERVE = 131, SUBMIT = 132 };

static const char *const names[VARIANTS] = {"none", "empty", "time", "ring buffer", "array"};
static const char *const places[] = {"sched_switch", "sched_waking", "sched_wakeup"};
static struct bpf_insn code[64];
static int length, ring, array;

static void die(const char *what)
{
    fprintf(stderr, "tracepoints: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int bpf(enum bpf_cmd command, union bpf_attr *attr, const char *what)
{
    long fd = syscall(SYS_bpf, command, attr, sizeof *attr);
    if (fd < 0)
        die(what);
    return (int)fd;
}

static int make_map(uint32_t type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags)
{
    union bpf_attr attr = {.map_type = type, .key_size = key, .value_size = value, .max_entries = entries, .map_flags = flags};
    return bpf(BPF_MAP_CREATE, &attr, "a map");
}

static void put(uint8_t op, uint8_t to, uint8_t from, int16_t offset, int32_t number)
{
    code[length++] = (struct bpf_insn){.code = op, .dst_reg = to, .src_reg = from, .off = offset, .imm = number};
}

static void call(int function)
{
    put(0x85, 0, 0, 0, function);
}

/* Thread and time to r6's place, and five words more. */
static void words(int place, int who, int time)
{
    put(0x7b, place, time, 0, 0);
    put(0x7b, place, who, 8, 0);
    for (int16_t at = 16; at < 56; at += 8)
        put(0x7a, place, 0, at, 3);
}

static void write_program(int variant)
{
    length = 0;
    if (variant == TIME)
        call(KTIME);
    if (variant == RING || variant == ARRAY) {
        call(CURRENT);
        put(0xbf, 7, 0, 0, 0);
        call(CPU);
        call(KTIME);
        put(0xbf, 6, 0, 0, 0);
    }
    if (variant == RING) {
        put(0x18, 1, 1, 0, ring); /* r1 = the map, two slots */
        put(0, 0, 0, 0, 0);
        put(0xb7, 2, 0, 0, 56);
        put(0xb7, 3, 0, 0, 0);
        call(RESERVE);
        put(0x15, 0, 0, 11, 0); /* no room: to the end */
        put(0xbf, 8, 0, 0, 0);
        words(8, 7, 6);
        put(0xbf, 1, 8, 0, 0);
        put(0xb7, 2, 0, 0, 1); /* without waking the reader */
        call(SUBMIT);
    }
    if (variant == ARRAY) {
        put(0x18, 8, 2, 0, array); /* r8 = the array's value, two slots */
        put(0, 0, 0, 0, 0);
        put(0x79, 1, 8, 0, 0); /* its first word is the position */
        put(0xbf, 2, 1, 0, 0);
        put(0x57, 2, 0, 0, ARRAY_BYTES - 64);
        put(0x0f, 2, 8, 0, 0);
        put(0x07, 2, 0, 0, 64);
        words(2, 7, 6);
        put(0x07, 1, 0, 0, 64);
        put(0x7b, 8, 1, 0, 0);
    }
    put(0xb7, 0, 0, 0, 0);
    put(0x95, 0, 0, 0, 0);
}

static void run_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        die("a processor");
}

static pid_t begin_reader(void)
{
    pid_t reader = fork();
    if (reader != 0)
        return reader;
    volatile uint64_t *ours = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    volatile uint64_t *theirs = mmap(NULL, 4096, PROT_READ, MAP_SHARED, ring, 4096);
    if (ours == MAP_FAILED || theirs == MAP_FAILED)
        die("the ring buffer");
    run_on(1);
    for (;;) {
        usleep(2000);
        *ours = *theirs;
    }
}

/* Nanoseconds of a round trip. */
static double storm(long trips)
{
    int there[2], back[2];
    char byte = 'x';
    if (pipe(there) != 0 || pipe(back) != 0)
        die("a pipe");
    pid_t other = fork();
    if (other == 0) {
        while (read(there[0], &byte, 1) == 1 && byte != 'q' && write(back[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < trips; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            die("a round trip");
    clock_gettime(CLOCK_MONOTONIC, &end);
    byte = 'q';
    if (write(there[1], &byte, 1) != 1)
        die("an end");
    waitpid(other, NULL, 0);
    for (int i = 0; i < 2; i++)
        close(there[i]), close(back[i]);
    return ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / trips;
}

static double measure(int variant, long trips)
{
    int fds[4], made = 0;
    if (variant != NONE) {
        write_program(variant);
        union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insn_cnt = length};
        attr.insns = (uint64_t)(uintptr_t)code;
        attr.license = (uint64_t)(uintptr_t) "Dual MIT/GPL";
        int program = fds[made++] = bpf(BPF_PROG_LOAD, &attr, "a program");
        for (int i = 0; i < 3; i++) {
            union bpf_attr at = {.raw_tracepoint = {.name = (uint64_t)(uintptr_t)places[i], .prog_fd = program}};
            fds[made++] = bpf(BPF_RAW_TRACEPOINT_OPEN, &at, places[i]);
        }
    }
    usleep(20000);
    double ns = storm(trips);
    while (made > 0)
        close(fds[--made]);
    usleep(20000);
    return ns;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 15, trips = argc > 2 ? atol(argv[2]) : 40000;
    if (rounds < 1 || rounds > MOST || trips < 1) {
        fprintf(stderr, "usage: tracepoints [ROUNDS (1 to %d) [TRIPS]]\n", MOST);
        return 2;
    }
    ring = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES, 0);
    array = make_map(BPF_MAP_TYPE_ARRAY, 4, ARRAY_BYTES + 4096, 1, BPF_F_MMAPABLE);
    pid_t reader = begin_reader();
    run_on(0);
    static double all[VARIANTS][MOST];
    for (long round = 0; round < rounds; round++)
        for (int variant = 0; variant < VARIANTS; variant++)
            all[variant][round] = measure(variant, trips);
    kill(reader, SIGKILL);
    double bare = 0;
    printf("%-12s %9s %9s %6s\n", "program", "least ns", "median ns", "ratio");
    for (int variant = 0; variant < VARIANTS; variant++) {
        qsort(all[variant], rounds, sizeof **all, compare);
        double median = all[variant][rounds / 2];
        bare = variant == NONE ? median : bare;
        printf("%-12s %9.0f %9.0f %6.3f\n", names[variant], all[variant][0], median, median / bare);
    }
    return 0;
}
