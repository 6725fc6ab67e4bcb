/* What a launch of an empty kernel takes: ns, of bursts without a wait.
 *
 *   launch driver|runtime [BURSTS [LAUNCHES]]
 *
 * Writes the least, the lower quartile and the median of the bursts' means.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

#define OK(call) do { int e_ = (int)(call); if (e_) { fprintf(stderr, "%s:%d: %d\n", __FILE__, __LINE__, e_); exit(1); } } while (0)

__global__ void empty() {}

static double now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    bool driver = argc > 1 && !strcmp(argv[1], "driver");
    int bursts = argc > 2 ? atoi(argv[2]) : 200, launches = argc > 3 ? atoi(argv[3]) : 500;
    cudaStream_t stream;
    cudaFunction_t f;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaGetFuncBySymbol(&f, (const void *)empty));
    std::vector<double> all;
    for (int burst = 0; burst < bursts + 10; burst++) {
        double begin = now_ns();
        for (int i = 0; i < launches; i++) {
            if (driver) cuLaunchKernel((CUfunction)f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
            else cudaLaunchKernel((const void *)empty, dim3(1), dim3(1), nullptr, 0, stream);
        }
        double took = now_ns() - begin;
        OK(cudaStreamSynchronize(stream));
        if (burst >= 10) all.push_back(took / launches);
    }
    std::sort(all.begin(), all.end());
    printf("LAUNCH %.0f %.0f %.0f\n", all[0], all[all.size() / 4], all[all.size() / 2]);
    return 0;
}
