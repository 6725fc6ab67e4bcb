/* The cost of CUDA's calls, on a driver that does nothing.
 *
 *   cuda_loop [-n calls in a loop=10000] [-r rounds=10] [-p pause in ms=20]
 *
 * For each function: NAME.median and so on. `kernel` launches an empty kernel, and lets
 * the tracer collect what it timed now and then, as programs do by waiting.
 */
#include "bench.h"

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuStreamCreate(void **, unsigned);
int cuDeviceGetAttribute(int *, int, int);
int cuCtxGetCurrent(void **);
int cuCtxSynchronize(void);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int cudaSetDevice(int);
int cudaGetDevice(int *);

enum { WAIT_EVERY = 500 };

static void *function, *stream;

static void get_attribute(long n)
{
    int value;
    for (long i = 0; i < n; i++)
        cuDeviceGetAttribute(&value, 16, 0);
}

/* Never the same question twice, so that nothing is folded. */
static void get_attributes(long n)
{
    int value;
    for (long i = 0; i < n; i++)
        cuDeviceGetAttribute(&value, i & 63, 0);
}

static void get_current(long n)
{
    void *context;
    for (long i = 0; i < n; i++)
        cuCtxGetCurrent(&context);
}

static void get_device(long n)
{
    int device;
    for (long i = 0; i < n; i++)
        cudaGetDevice(&device);
}

static void launch(long n)
{
    for (long i = 1; i <= n; i++) {
        cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
        if (i % WAIT_EVERY == 0)
            cuCtxSynchronize();
    }
}

static void measure(const struct options *o, const char *name, void (*loop)(long))
{
    ROUNDS(o, name, o->most, loop(WAIT_EVERY), loop(o->most));
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv, (struct options){10, 20, 10000});
    void *context, *module;
    calibrate();
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuModuleLoadData(&module, "") ||
        cuModuleGetFunction(&function, module, "nothing") || cuStreamCreate(&stream, 1) || cudaSetDevice(0))
        return 1;
    measure(&o, "same_attribute", get_attribute);
    measure(&o, "attributes", get_attributes);
    measure(&o, "current", get_current);
    measure(&o, "device", get_device);
    measure(&o, "kernel", launch);
    return 0;
}
