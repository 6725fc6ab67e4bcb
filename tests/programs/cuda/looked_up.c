/* Reaches the driver as the runtime does: opened by name, and every function from
 * cuGetProcAddress, with and without the per-thread default stream.
 *
 *   looked_up [READY GO]...  then, for each pair, makes the file READY, waits until there is GO, and
 *                            launches five times more, in a stream made before, by the address that
 *                            it asked for at first
 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static CUresult (*look_up)(const char *, void **, int, uint64_t, int *);

static void *get(const char *name, int per_thread)
{
    void *found = NULL;
    int status = -1;
    if (look_up(name, &found, 13000, per_thread ? 2 : 1, &status) || !found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return found;
}

#define CALL(name, per_thread, types, ...)                                                         \
    do {                                                                                           \
        CUresult error_ = ((CUresult(*) types)get(name, per_thread))(__VA_ARGS__);                 \
        if (error_) {                                                                              \
            fprintf(stderr, "%s: %d\n", name, error_);                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef CUresult (*launcher)(CUkernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream, void **, void **);

int main(int argc, char **argv)
{
    CUcontext c;
    CUlibrary l;
    CUkernel k;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || !(look_up = dlsym(driver, "cuGetProcAddress_v2")))
        return 1;
    CALL("cuInit", 0, (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", 0, (CUcontext *, int), &c, 0);
    CALL("cuCtxSetCurrent", 0, (CUcontext), c);
    CALL("cuLibraryLoadData", 0, (CUlibrary *, const char *, void *, void *, int, void *, void *, int),
         &l, "code", NULL, NULL, 0, NULL, NULL, 0);
    CALL("cuLibraryGetKernel", 0, (CUkernel *, CUlibrary, const char *), &k, l, "k1000");
    for (int flavour = 0; flavour < 2; flavour++) {
        for (int i = 0; i < 3 + flavour; i++)
            CALL("cuLaunchKernel", flavour,
                 (CUkernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  CUstream, void **, void **), k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        CALL("cuStreamSynchronize", flavour, (CUstream), NULL);
    }
    launcher launch = (launcher)get("cuLaunchKernel", 0);
    CUstream stream = NULL;
    CALL("cuStreamCreate", 0, (CUstream *, unsigned), &stream, 1);
    for (int pair = 1; pair + 1 < argc; pair += 2) {
        FILE *ready = fopen(argv[pair], "w");
        if (!ready || fclose(ready))
            return 1;
        while (access(argv[pair + 1], F_OK))
            usleep(1000);
        for (int i = 0; i < 5; i++)
            if (launch(k, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL))
                return 1;
        CALL("cuStreamSynchronize", 0, (CUstream), stream);
    }
    CALL("cuDevicePrimaryCtxRelease", 0, (int), 0);
    puts("done");
    return 0;
}
