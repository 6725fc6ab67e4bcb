/* Another interposer in the same process: it stands for two functions and passes them
 * on, to what is behind it and to what it opens itself. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static int calls;

int cudaMalloc(void **address, size_t size)
{
    calls++;
    return ((int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc"))(address, size);
}

int cuInit(unsigned flags)
{
    calls++;
    return ((int (*)(unsigned))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit"))(flags);
}

__attribute__((destructor)) static void report(void)
{
    if (calls)
        printf("%d calls passed on\n", calls);
}
