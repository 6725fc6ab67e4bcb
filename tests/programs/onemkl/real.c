/* Calls the real oneMKL by either interface: its integers are passed with 8 bytes. */
#include <stdio.h>

void cblas_dgemm(int, int, int, long long, long long, long long, double, const double *, long long, const double *, long long,
                 double, double *, long long);
long DftiCreateDescriptor_d_1d(void **, int, ...);
long DftiSetValue(void *, int, ...);
long DftiGetValue(void *, int, ...);
long DftiCommitDescriptor(void *);
long DftiComputeForward(void *, void *, ...);
long DftiFreeDescriptor(void **);

int main(void) {
    double a[12], b[12], c[16] = {0}, x[256], sum = 0, scale = 0;
    for (int i = 0; i < 12; i++)
        a[i] = b[i] = 2;
    for (int i = 0; i < 256; i++)
        x[i] = i;
    for (int i = 0; i < 3; i++)
        cblas_dgemm(101, 111, 111, 4, 4, 3, 1.0, a, 3, b, 4, 0.0, c, 4);
    for (int i = 0; i < 16; i++)
        sum += c[i];
    void *transform;
    long status = DftiCreateDescriptor_d_1d(&transform, 32, 128L);
    status |= DftiSetValue(transform, 4, 0.5);
    status |= DftiGetValue(transform, 4, &scale);
    status |= DftiCommitDescriptor(transform);
    status |= DftiComputeForward(transform, x);
    status |= DftiFreeDescriptor(&transform);
    printf("product %.1f, scale %.3f, sum %.1f, status %ld\n", sum, scale, x[0], status);
    printf("calls cblas_dgemm 3\ncalls DftiCreateDescriptor_d_1d 1\ncalls DftiSetValue 1\ncalls DftiGetValue 1\n"
           "calls DftiCommitDescriptor 1\ncalls DftiComputeForward 1\ncalls DftiFreeDescriptor 1\n");
    return 0;
}
