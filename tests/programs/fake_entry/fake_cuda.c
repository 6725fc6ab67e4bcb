/* Stands for libcuda.so.1: a few functions, the two ways to ask for them by name, and
 * some that no model has. Returns 0 when all arguments arrived. */
#include "fake.h"
#include <errno.h>
#include <immintrin.h>
#include <stdint.h>

int cuInit(unsigned flags)
{
    COUNT(1);
    return flags;
}

/* Only the tool asks, which nobody shall trace: not counted. */
int cuDriverGetVersion(int *version)
{
    *version = 12090;
    return 0;
}

/* The oldest one is another function. */
int cuMemAlloc(unsigned *address, unsigned size)
{
    COUNT(1);
    *address = size;
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, uint64_t size)
{
    COUNT(1);
    *address = size + 1;
    return 0;
}

int cuMemFree_v2(uint64_t address)
{
    COUNT(1);
    return address < 1;
}

/* Newer than the model: seven words, two fractions, the last word on the stack. */
int cuBrandNew(int a, double b, void *c, uint64_t d, float e, int f, int g, uint64_t h)
{
    COUNT(0);
    return !(a == 1 && b == 2.5 && c == &errno && d == 4 && e == 5.5f && f == 6 && g == 7 && h == 8 && errno == 77);
}

/* An argument that needs the upper half of a register. */
__attribute__((target("avx"))) int cuBrandWide(__m256d a, __m256d b)
{
    COUNT(0);
    double x[4], y[4];
    _mm256_storeu_pd(x, a);
    _mm256_storeu_pd(y, b);
    for (int i = 0; i < 4; i++)
        if (x[i] != i + 1 || y[i] != -i - 1)
            return 1;
    return 0;
}

/* Not a function, though it is called like one. */
const int cuBrandData[4] = {1, 2, 3, 4};

static int cuHidden(int a, int b)
{
    COUNT(0);
    return a + b;
}

/* Reached without a name: nobody can trace it, so it is not counted. */
static int secret(int a, int b)
{
    return a + b;
}

static const void *table[] = {(void *)16, (void *)secret};

int cuGetExportTable(const void **out, const void *id)
{
    COUNT(1);
    *out = table;
    return id == NULL;
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);

static void *find(const char *name, int version)
{
    static const struct {
        const char *name;
        int since;
        void *function;
    } all[] = {
        {"cuInit", 2000, cuInit},
        {"cuDriverGetVersion", 2020, cuDriverGetVersion},
        {"cuMemAlloc", 3020, cuMemAlloc_v2},
        {"cuMemAlloc", 2000, cuMemAlloc},
        {"cuMemFree", 3020, cuMemFree_v2},
        {"cuBrandNew", 12000, cuBrandNew},
        {"cuBrandWide", 12000, cuBrandWide},
        {"cuHidden", 12000, cuHidden},
        {"cuGetExportTable", 3000, cuGetExportTable},
        {"cuGetProcAddress", 12000, cuGetProcAddress_v2},
        {"cuGetProcAddress", 11030, cuGetProcAddress},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (version >= all[i].since && strcmp(name, all[i].name) == 0)
            return all[i].function;
    return NULL;
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
    COUNT(1);
    (void)flags;
    *out = find(name, version);
    return *out ? 0 : 500;
}

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    COUNT(1);
    (void)flags;
    *out = find(name, version);
    if (status)
        *status = *out == NULL;
    return 0;
}
