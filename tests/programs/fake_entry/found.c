/* The driver found at run time.
 *
 *   found dlsym|default|next|address
 */
#include "runtime.h"
#include <errno.h>
#include <immintrin.h>
#include <string.h>

static void *library;
static int (*get)(const char *, void **, int, uint64_t, int *);
static const char *mode;

static void *find(const char *name)
{
    void *f = NULL;
    int status = 0;
    if (strcmp(mode, "dlsym") == 0)
        return dlsym(library, name);
    if (strcmp(mode, "default") == 0)
        return dlsym(RTLD_DEFAULT, name);
    /* Names come without the suffix of their version. */
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)(strstr(name, "_v2") ? strlen(name) - 3 : strlen(name)), name);
    CHECK(get(bare, &f, 12020, 0, &status) == 0 && status == 0);
    return f;
}

__attribute__((target("avx"))) static int wide(int (*f)(__m256d, __m256d))
{
    return f(_mm256_set_pd(4, 3, 2, 1), _mm256_set_pd(-4, -3, -2, -1));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    mode = argv[1];
    library = dlopen("libcuda.so.1", RTLD_NOW | (strcmp(mode, "default") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
    CHECK(library);
    get = (int (*)(const char *, void **, int, uint64_t, int *))dlsym(library, "cuGetProcAddress_v2");
    CHECK(get);
    int (*init)(unsigned) = find("cuInit");
    int (*allocate)(uint64_t *, uint64_t) = find("cuMemAlloc_v2");
    int (*release)(uint64_t) = find("cuMemFree_v2");
    int (*brand_new)(int, double, void *, uint64_t, float, int, int, uint64_t) = find("cuBrandNew");
    CHECK(init && allocate && release && brand_new && find("cuBrandNew") == (void *)brand_new);
    for (int i = 0; i < 100; i++) {
        uint64_t address = 0;
        CHECK(init(0) == 0 && allocate(&address, 5) == 0 && address == 6 && release(address) == 0);
        errno = 77;
        CHECK(brand_new(1, 2.5, &errno, 4, 5.5f, 6, 7, 8) == 0 && errno == 77);
    }
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx"))
        CHECK(wide((int (*)(__m256d, __m256d))find("cuBrandWide")) == 0);
    if (strcmp(mode, "address") == 0) {
        int (*hidden)(int, int) = find("cuHidden");
        CHECK(hidden(2, 3) == 5);
        /* A lookup of the lookup function gets one that returns the same addresses. */
        get = (int (*)(const char *, void **, int, uint64_t, int *))find("cuGetProcAddress_v2");
        CHECK(find("cuInit") == (void *)init);
    } else {
        const int *data = find("cuBrandData");
        CHECK(data && data[3] == 4);
        CHECK(dlsym(library, "cuNoSuchThing") == NULL && dlerror() != NULL);
    }
    return 0;
}
