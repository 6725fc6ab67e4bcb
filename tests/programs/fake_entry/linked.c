/* A program that is linked to the driver and to one runtime. */
#include "runtime.h"
#include <errno.h>

int cuInit(unsigned);
int cuMemAlloc_v2(uint64_t *, uint64_t);
int cuGetExportTable(const void **, const void *);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaSetDevice(int);
int cudaIpcOpenMemHandle(void **, struct handle, unsigned);
int cudaMemcpyBatchAsync();

int main(void)
{
    uint64_t address = 0;
    const void *table = NULL;
    struct runtime r = {cudaMalloc, cudaFree, cudaSetDevice, cudaIpcOpenMemHandle, (void *)cudaMemcpyBatchAsync};
    errno = 33;
    for (int i = 0; i < 10; i++)
        CHECK(!cuInit(0) && !cuMemAlloc_v2(&address, 7) && address == 8 && uses(&r, 13));
    CHECK(errno == 33);
    CHECK(!cuGetExportTable(&table, "id") && ((const size_t *)table)[0] == 16);
    int (*hidden)(int, int) = ((void **)table)[1];
    CHECK(hidden(2, 3) == 5);
    /* A tool beside the program does as it likes. */
    void *tool = dlopen("libcupti.so.12", RTLD_NOW);
    CHECK(tool);
    CHECK(((int (*)(void))dlsym(tool, "cuptiActivityEnable"))() == 0);
    return 0;
}
