// What single calls cost: `bench ROUNDS` prints the least and the median nanoseconds of
// each over rounds, as one JSON line, so that runs under different tools can be compared.
// `bench ROUNDS launch` does launches only; `bench ROUNDS parts`, under hetrace, turns its parts
// on and off in turn (the flags of docs/shm-abi.md, and CUPTI's activities) and reports what a
// launch costs with each: runs of one program after another differ by more than that.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

__global__ void nothing() {}

static double now() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int less(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *name, double *times, int rounds, const char *end) {
    qsort(times, rounds, sizeof *times, less);
    printf("\"%s\": {\"min\": %.2f, \"median\": %.2f}%s", name, times[0], times[rounds / 2], end);
}

// With RECORD the bits by which a budget adds calls up: `bench` under `--max-overhead` shows what that takes.
enum { APIS = 32, NAMES = 48, NAME = 32, FLAGS = 0x2000, PAGE = 4096, RECORD = 1 | 4 | 8, HOOK = 2 };

// What is on: flags of the driver's functions and of the runtime's, and CUPTI's kernels.
static const struct {
    const char *name;
    int driver, runtime, kernels;
} parts[] = {
    {"bare", 0, 0, 0},
    {"runtime", 0, RECORD | HOOK, 0},
    {"driver", RECORD, 0, 0},
    {"calls", RECORD, RECORD | HOOK, 0},
    {"CUPTI", 0, 0, 1},
    {"hooks", HOOK, 0, 1},
    {"all", RECORD | HOOK, RECORD | HOOK, 1},
};
enum { PARTS = sizeof parts / sizeof *parts };

static void *loaded(const char *name) {
    char line[4096], path[4096] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *at = strchr(line, '/');
        if (at && strstr(at, name)) sscanf(at, "%4095[^\n]", path);
    }
    if (maps) fclose(maps);
    return *path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

static int in_parts(int rounds) {
    char path[4096];
    const char *session = getenv("HETRACE_SESSION");
    snprintf(path, sizeof path, "%s/control", session ? session : "");
    int file = open(path, O_RDWR);
    size_t size = FLAGS + APIS * PAGE;
    char *control = (char *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || control == MAP_FAILED) return fprintf(stderr, "not under hetrace\n"), 1;
    char *before = (char *)malloc(size);
    memcpy(before, control, size);
    void *cupti = loaded("libcupti.so");
    int (*on)(int) = cupti ? (int (*)(int))dlsym(cupti, "cuptiActivityEnable") : NULL;
    int (*off)(int) = cupti ? (int (*)(int))dlsym(cupti, "cuptiActivityDisable") : NULL;
    double *times = (double *)malloc(PARTS * rounds * sizeof *times);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < PARTS; i++) {
            int part = (i + round) % PARTS;
            for (int api = 0; api < APIS; api++) {
                const char *name = control + NAMES + api * NAME;
                int mask = !strcmp(name, "cuda") ? parts[part].driver : !strcmp(name, "cudart") ? parts[part].runtime : 0;
                char *flags = control + FLAGS + api * PAGE, *old = before + FLAGS + api * PAGE;
                for (int f = 0; f < PAGE; f++) flags[f] = old[f] & mask;
            }
            if (on && off) (parts[part].kernels ? on : off)(10);  // concurrent kernels
            for (int k = 0; k < 500; k++) nothing<<<1, 1>>>();
            cudaDeviceSynchronize();
            double begin = now();
            for (int k = 0; k < 1000; k++) nothing<<<1, 1>>>();
            times[part * rounds + round] = (now() - begin) / 1000;
            cudaDeviceSynchronize();
        }
    }
    memcpy(control + FLAGS, before + FLAGS, size - FLAGS);
    printf("{");
    for (int part = 0; part < PARTS; part++)
        report(parts[part].name, times + part * rounds, rounds, part + 1 < PARTS ? ", " : "}\n");
    return 0;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20, value;
    double *times = (double *)malloc(rounds * sizeof *times);
    CUdevice device;
    cudaFree(0);
    cuDeviceGet(&device, 0);
    for (int i = 0; i < 2000; i++) nothing<<<1, 1>>>();
    cudaDeviceSynchronize();
    if (argc > 2 && !strcmp(argv[2], "parts")) return in_parts(rounds);
    printf("{");
    for (int round = 0; round < rounds; round++) {
        double begin = now();
        for (int i = 0; i < 1000; i++) nothing<<<1, 1>>>();
        times[round] = (now() - begin) / 1000;
        cudaDeviceSynchronize();
    }
    bool alone = argc > 2 && !strcmp(argv[2], "launch");
    report("launch", times, rounds, alone ? "}\n" : ", ");
    if (alone) return 0;
    for (int round = 0; round < rounds; round++) {
        double begin = now();
        for (int i = 0; i < 200000; i++) cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
        times[round] = (now() - begin) / 200000;
    }
    report("attribute", times, rounds, ", ");
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaEventRecord(event);
    cudaDeviceSynchronize();
    for (int round = 0; round < rounds; round++) {
        double begin = now();
        for (int i = 0; i < 100000; i++) cudaEventQuery(event);
        times[round] = (now() - begin) / 100000;
    }
    report("query", times, rounds, "}\n");
    return 0;
}
