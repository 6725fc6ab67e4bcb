/* The cost of launches under `hetrace run --inside`, on a driver that does nothing.
 *
 *   inside_loop FILE [-n calls in a loop=10000] [-r rounds=10] [-p pause in ms=20]
 *
 * FILE is a text of PTX with the kernels `wanted` and `other`; each is launched in a loop of its own. NAME.median and so on.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuStreamCreate(void **, unsigned);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static void *wanted, *other, *stream;

static void launch_wanted(long n)
{
    for (long i = 0; i < n; i++)
        cuLaunchKernel(wanted, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static void launch_other(long n)
{
    for (long i = 0; i < n; i++)
        cuLaunchKernel(other, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc - 1, argv + 1, (struct options){10, 20, 10000});
    static char text[1 << 20];
    void *context, *module;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!file)
        return 2;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    calibrate();
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuModuleLoadData(&module, text) ||
        cuModuleGetFunction(&wanted, module, "wanted") || cuModuleGetFunction(&other, module, "other") ||
        cuStreamCreate(&stream, 1))
        return 1;
    ROUNDS(&o, "wanted", o.most, launch_wanted(500), launch_wanted(o.most));
    ROUNDS(&o, "other", o.most, launch_other(500), launch_other(o.most));
    return 0;
}
