// What single calls cost: `bench ROUNDS` prints the least and the median nanoseconds of
// each over rounds, as one JSON line, so that runs under different tools can be compared.
// `bench ROUNDS launch` does launches only.
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20, value;
    double *times = (double *)malloc(rounds * sizeof *times);
    CUdevice device;
    cudaFree(0);
    cuDeviceGet(&device, 0);
    for (int i = 0; i < 2000; i++) nothing<<<1, 1>>>();
    cudaDeviceSynchronize();
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
