/* A runtime on top of the fake driver: of each of its calls one or two of the driver come. */
#include "fake_cuda.h"

#include <stddef.h>

typedef struct {
    unsigned x, y, z;
} dim3;

CUresult cuCtxSynchronize(void);
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);

int cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

/* A kernel is what the driver calls it. */
int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, CUstream stream)
{
    CUcontext context;
    int result = cuCtxGetCurrent(&context);
    return result ? result
                  : cuLaunchKernel((CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                   (unsigned)shared, stream, arguments, NULL);
}

int cudaDeviceSynchronize(void)
{
    return cuCtxSynchronize();
}
