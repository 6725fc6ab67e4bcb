/* A fake of oneMKL's interface with integers of 4 bytes (INT is int) or of 8 (long long). */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

struct version {
    int numbers[3];
    const char *texts[4];
};

void MKL_Get_Version(struct version *version) { *version = (struct version){.numbers = {2026, 0, 2}}; }

double cblas_ddot(INT n, const double *x, INT incx, const double *y, INT incy) {
    double sum = 0;
    for (INT i = 0; i < n; i++)
        sum += x[i * incx] * y[i * incy];
    return sum;
}

double cblas_ddot_64(long long n, const double *x, long long incx, const double *y, long long incy) {
    double sum = 0;
    for (long long i = 0; i < n; i++)
        sum += x[i * incx] * y[i * incy];
    return sum;
}

/* A negative size is an argument that can't be. */
INT LAPACKE_dgesv(int layout, INT n, INT nrhs, double *a, INT lda, INT *pivots, double *b, INT ldb) {
    (void)layout, (void)nrhs, (void)a, (void)lda, (void)pivots, (void)b, (void)ldb;
    return n < 0 ? -2 : 0;
}

struct descriptor {
    double scale;
    long size, transforms;
};

long DftiCreateDescriptor_d_1d(struct descriptor **made, int domain, ...) {
    va_list more;
    va_start(more, domain);
    *made = calloc(1, sizeof **made);
    (*made)->size = va_arg(more, long);
    va_end(more);
    return 0;
}

long DftiCreateDescriptor_d_md(struct descriptor **made, int domain, long many, ...) {
    va_list more;
    va_start(more, many);
    *made = calloc(1, sizeof **made);
    const long *sizes = va_arg(more, const long *);
    (*made)->size = 1;
    for (long i = 0; i < many; i++)
        (*made)->size *= sizes[i];
    va_end(more);
    (void)domain;
    return 0;
}

/* 4 is DFTI_FORWARD_SCALE, 7 DFTI_NUMBER_OF_TRANSFORMS; nothing else is known. */
long DftiSetValue(struct descriptor *of, int param, ...) {
    va_list more;
    va_start(more, param);
    long status = 0;
    if (param == 4)
        of->scale = va_arg(more, double);
    else if (param == 7)
        of->transforms = va_arg(more, long);
    else
        status = 3;
    va_end(more);
    return status;
}

long DftiGetValue(struct descriptor *of, int param, ...) {
    va_list more;
    va_start(more, param);
    if (param == 4)
        *va_arg(more, double *) = of->scale;
    va_end(more);
    return 0;
}

/* Writes the scale to each of four places. */
long DftiComputeForward(struct descriptor *of, double *first, ...) {
    va_list more;
    va_start(more, first);
    *first = of->scale;
    for (int i = 1; i < 4; i++)
        *va_arg(more, double *) = of->scale + i;
    va_end(more);
    return 0;
}

long DftiFreeDescriptor(struct descriptor **of) {
    free(*of);
    *of = NULL;
    return 0;
}
