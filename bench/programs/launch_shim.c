/* What a library that is preloaded in front of a launch costs at least: for `LD_PRELOAD`, in front of cuLaunchKernel and
 * cudaLaunchKernel, as programs that are linked to both call them. WHAT chooses what it does:
 *
 *   0  jumps on                       4  as 2, and one addition with a lock before
 *   1  calls, and returns             5  as 2, and asks before whether the stream is being captured
 *   2  as 1, and two additions before 6  as 2, and two additions to memory that is shared with another process
 *   3  as 2, and the counter, twice   7  as 2, and reads 16 lines of memory before, each in a page of its own
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef WHAT
#define WHAT 0
#endif

typedef int driver_launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef struct { unsigned x, y, z; } dim;
typedef int runtime_launch(const void *, dim, dim, void **, size_t, void *);

__attribute__((visibility("hidden"))) driver_launch *shim_driver;
__attribute__((visibility("hidden"))) runtime_launch *shim_runtime;
static int (*is_capturing)(void *, int *);
static struct { _Alignas(64) uint64_t one, two; } counts, *shared = &counts;
static _Alignas(4096) volatile uint64_t pages[16][512];

__attribute__((constructor)) static void find(void)
{
    shim_driver = dlsym(RTLD_NEXT, "cuLaunchKernel");
    shim_runtime = dlsym(RTLD_NEXT, "cudaLaunchKernel");
    is_capturing = dlsym(RTLD_NEXT, "cuStreamIsCapturing");
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (WHAT == 6 && page != MAP_FAILED)
        shared = page;
}

#if WHAT == 0
__asm__(".text\n.globl cuLaunchKernel\n.type cuLaunchKernel,@function\ncuLaunchKernel: jmp *shim_driver(%rip)\n"
        ".globl cudaLaunchKernel\n.type cudaLaunchKernel,@function\ncudaLaunchKernel: jmp *shim_runtime(%rip)\n");
#else
static inline __attribute__((always_inline)) void before(void *stream)
{
    (void)stream;
    if (WHAT >= 2) {
        *(volatile uint64_t *)&shared->one += 1;
        *(volatile uint64_t *)&shared->two += 1;
    }
    if (WHAT == 3)
        *(volatile uint64_t *)&shared->two += __builtin_ia32_rdtsc();
    if (WHAT == 4)
        __atomic_fetch_add(&counts.one, 1, __ATOMIC_RELAXED);
    int status;
    if (WHAT == 5 && is_capturing)
        is_capturing(stream, &status);
    if (WHAT == 7)
        for (int i = 0; i < 16; i++)
            (void)pages[i][i * 8];
}

static inline __attribute__((always_inline)) int after(int error)
{
    if (WHAT == 3)
        *(volatile uint64_t *)&shared->one += __builtin_ia32_rdtsc();
    /* Something is left to do, so that the real function is called and not jumped to. */
    __asm__ volatile("" : "+r"(error));
    return error;
}

int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned bytes, void *stream,
                   void **params, void **extra)
{
    before(stream);
    return after(shim_driver(f, x, y, z, a, b, c, bytes, stream, params, extra));
}

int cudaLaunchKernel(const void *f, dim grid, dim block, void **arguments, size_t bytes, void *stream)
{
    before(stream);
    return after(shim_runtime(f, grid, block, arguments, bytes, stream));
}
#endif
