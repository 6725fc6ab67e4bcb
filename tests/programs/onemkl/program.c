/* Calls oneMKL, says what it got, and how often it called what. What an integer of 4 bytes leaves above itself in a register
 * is anything: so it is passed here, whatever interface there is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double cblas_ddot(long long n, const double *x, long long incx, const double *y, long long incy);
double cblas_ddot_64(long long n, const double *x, long long incx, const double *y, long long incy);
long long LAPACKE_dgesv(int, long long, long long, double *, long long, void *, double *, long long);
long DftiCreateDescriptor_d_1d(void **, int, ...);
long DftiCreateDescriptor_d_md(void **, int, long, ...);
long DftiSetValue(void *, int, ...);
long DftiGetValue(void *, int, ...);
long DftiComputeForward(void *, double *, ...);
long DftiFreeDescriptor(void **);

int main(int count, char **words) {
    int wide = count > 1 && strcmp(words[1], "wide") == 0;
    long long above = wide ? 0 : 0x5511223300000000LL;
    double x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8};
    errno = 42;
    for (int i = 0; i < 3; i++)
        printf("dot %.1f\n", cblas_ddot(4 | above, x, 1 | above, y, 1 | above));
    printf("dot %.1f\n", cblas_ddot_64(2, x, 1, y, 1));
    long long solved = LAPACKE_dgesv(101, 2 | above, 1 | above, x, 2 | above, y, y, 1 | above);
    long long refused = LAPACKE_dgesv(101, wide ? -5 : ((-5 & 0xffffffffLL) | above), 1, x, 2, y, y, 1);
    printf("solved %d, refused %d\n", (int)solved, (int)refused);
    void *one, *many;
    long sizes[3] = {4, 8, 16};
    long status = DftiCreateDescriptor_d_1d(&one, 32, 1024L);
    status |= DftiCreateDescriptor_d_md(&many, 32, 3, sizes);
    status |= DftiSetValue(one, 4, 0.125);
    status |= DftiSetValue(one, 7, 5L);
    long unknown = DftiSetValue(one, 99, 1L);
    double scale = 0, places[4];
    status |= DftiGetValue(one, 4, &scale);
    status |= DftiComputeForward(one, &places[0], &places[1], &places[2], &places[3]);
    printf("scale %.3f, places %.3f %.3f, status %ld %ld, errno %d\n", scale, places[0], places[3], status, unknown, errno);
    DftiFreeDescriptor(&one);
    printf("calls cblas_ddot 3\ncalls cblas_ddot_64 1\ncalls LAPACKE_dgesv 2\ncalls DftiCreateDescriptor_d_1d 1\n"
           "calls DftiCreateDescriptor_d_md 1\ncalls DftiSetValue 3\ncalls DftiGetValue 1\ncalls DftiComputeForward 1\n"
           "calls DftiFreeDescriptor 1\n");
    return 0;
}
