// Why a GPU idles, one planted cause at a time.
//
//   causes MODE
//
// host:    the host works 3 ms between steps of 1 ms
// sync:    the host waits after each launch of 100 us and prepares the next for 200 us
// overlap: copies and kernels alternate in one stream, though each step has its own memory
// poll:    one kernel of 400 ms, and the host asks for the event all the time
// mutex:   one thread holds a lock for 5 ms at a time while the other wants to launch
// late:    a stream waits for an event of a stream of another thread, which works on the host before it records that
// copies:  pageable memory is copied before each kernel
// busy:    the device always has work
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#define OK(call)                                                                                \
    do {                                                                                        \
        cudaError_t ok_ = (call);                                                               \
        if (ok_ != cudaSuccess) {                                                               \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(ok_));   \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

__global__ void step(float *data, long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < (unsigned long long)ns);
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

static const int BLOCKS = 264, THREADS = 128, BYTES = 16 << 20;

static void work_us(long us)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
    while (std::chrono::steady_clock::now() < end)
        ;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    auto is = [&](const char *name) { return std::strcmp(mode, name) == 0; };
    cudaStream_t one, two;
    float *data, *pinned, *plain = (float *)std::calloc(1, BYTES);
    OK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    OK(cudaMalloc(&data, 4 * BYTES));
    OK(cudaMallocHost(&pinned, 4 * BYTES));
    OK(cudaMemset(data, 0, 4 * BYTES));
    OK(cudaDeviceSynchronize());
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    if (is("host")) {
        for (int i = 0; i < 100; i++) {
            step<<<BLOCKS, THREADS, 0, one>>>(data, 1000000);
            OK(cudaStreamSynchronize(one));
            work_us(3000);
        }
    } else if (is("sync")) {
        for (int i = 0; i < 1000; i++) {
            step<<<BLOCKS, THREADS, 0, one>>>(data, 100000);
            OK(cudaStreamSynchronize(one));
            work_us(200);
        }
    } else if (is("overlap")) {
        for (int i = 0; i < 200; i++) {
            float *of = data + (i % 4) * (BYTES / 4);
            OK(cudaMemcpyAsync(of, pinned + (i % 4) * (BYTES / 4), BYTES, cudaMemcpyHostToDevice, one));
            step<<<BLOCKS, THREADS, 0, one>>>(of, 400000);
        }
    } else if (is("poll")) {
        step<<<BLOCKS, THREADS, 0, one>>>(data, 400000000);
        OK(cudaEventRecord(event, one));
        while (cudaEventQuery(event) == cudaErrorNotReady)
            ;
    } else if (is("mutex")) {
        std::mutex lock;
        std::atomic<bool> over{false};
        std::thread other([&] {
            while (!over) {
                {
                    std::lock_guard<std::mutex> held(lock);
                    work_us(5000);
                }
                std::this_thread::yield();
                work_us(50);
            }
        });
        for (int i = 0; i < 60; i++) {
            {
                std::lock_guard<std::mutex> held(lock);
                step<<<BLOCKS, THREADS, 0, one>>>(data, 500000);
            }
            OK(cudaStreamSynchronize(one));
        }
        over = true;
        other.join();
    } else if (is("late")) {
        for (int i = 0; i < 60; i++) {
            std::thread producer([&] {
                work_us(4000);
                step<<<BLOCKS, THREADS, 0, two>>>(data + BYTES / 4, 200000);
                OK(cudaEventRecord(event, two));
            });
            producer.join();
            OK(cudaStreamWaitEvent(one, event, 0));
            step<<<BLOCKS, THREADS, 0, one>>>(data, 500000);
            OK(cudaStreamSynchronize(one));
        }
    } else if (is("copies")) {
        for (int i = 0; i < 100; i++) {
            OK(cudaMemcpy(data, plain, BYTES, cudaMemcpyHostToDevice));
            step<<<BLOCKS, THREADS, 0, one>>>(data, 300000);
            OK(cudaStreamSynchronize(one));
        }
    } else if (is("busy")) {
        for (int i = 0; i < 400; i++)
            step<<<BLOCKS, THREADS, 0, one>>>(data, 1000000);
    } else {
        std::fprintf(stderr, "no mode %s\n", mode);
        return 2;
    }
    OK(cudaDeviceSynchronize());
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(one));
    OK(cudaStreamDestroy(two));
    OK(cudaFreeHost(pinned));
    OK(cudaFree(data));
    std::free(plain);
    return 0;
}
