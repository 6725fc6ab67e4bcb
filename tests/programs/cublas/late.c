/* Opens copies of cuBLAS late, by the names given, as Python's modules do, and works with all of them at once. */
#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>

enum { MOST = 8 };

int main(int argc, char **argv)
{
    cublasHandle_t handles[MOST] = {0};
    int (*gemm[MOST])(cublasHandle_t, int, int, int, int, int, const float *, const float *, int, const float *, int,
                      const float *, float *, int);
    float alpha = 2, beta = 0.25f;
    for (int i = 1; i < argc && i < MOST; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "late: %s\n", dlerror());
            return 2;
        }
        int (*property)(int, int *) = (int (*)(int, int *))dlsym(library, "cublasGetProperty");
        int (*create)(cublasHandle_t *) = (int (*)(cublasHandle_t *))dlsym(library, "cublasCreate_v2");
        const char *(*text)(int) = (const char *(*)(int))dlsym(library, "cublasGetStatusString");
        *(void **)&gemm[i] = dlsym(library, "cublasSgemm_v2");
        int major = -1, minor = -1;
        property(0, &major);
        property(1, &minor);
        int status = create(&handles[i]);
        printf("%d.%d: create %d, %s\n", major, minor, status, text(status));
    }
    for (int i = 1; i < argc && i < MOST; i++)
        if (handles[i])
            printf("gemm %d\n", gemm[i](handles[i], 0, 0, 4, 4, 4, &alpha, NULL, 4, NULL, 4, &beta, NULL, 4));
    return 0;
}
