/* A library whose constructor uses CUDA: it may run before a preloaded library's. */
#include "runtime.h"

int cuInit(unsigned);
int cudaMalloc(void **, size_t);

static int (*late)(unsigned);

__attribute__((constructor)) static void begin(void)
{
    void *p;
    int (*get)(const char *, void **, int, uint64_t, int *);
    int status;
    CHECK(!cuInit(0) && !cuInit(0) && !cudaMalloc(&p, 1));
    *(void **)&get = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    CHECK(get && !get("cuInit", (void **)&late, 12000, 0, &status));
}

int use_early(void)
{
    return late(0);
}

/* The runtime again, by name in the global scope, as POSIX describes. */
int use_posix(void)
{
    void *p;
    dlerror();
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_DEFAULT, "cudaMalloc");
    const char *error = dlerror();
    return error || !allocate || allocate(&p, 1) || cudaMalloc(&p, 1);
}
