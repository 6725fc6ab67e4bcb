/* A library of products that are one launch by the runtime each, as fast as that can be done. */
#include <stddef.h>

typedef struct { unsigned x, y, z; } dim3;
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);

static char handle;

int cublasCreate_v2(void **h)
{
    *h = &handle;
    return 0;
}

int cublasGetVersion_v2(void *h, int *version)
{
    *version = 130100;
    return h != &handle;
}

int cublasGetProperty(int type, int *value)
{
    *value = type == 0 ? 13 : 1;
    return 0;
}

/* Scalars are the host's. */
int cublasGetPointerMode_v2(void *h, int *mode)
{
    *mode = 0;
    return h != &handle;
}

int cublasSgemm_v2(void *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda,
                   const float *b, int ldb, const float *beta, float *c, int ldc)
{
    (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta,
        (void)c, (void)ldc;
    return cudaLaunchKernel(h, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL);
}
