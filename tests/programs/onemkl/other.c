/* A library of linear algebra that is not oneMKL and has names of its functions, one of which it calls itself. */
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy) {
    (void)x, (void)incx, (void)y, (void)incy;
    return -n;
}

int LAPACKE_dgesv(int layout, int n, int nrhs, double *a, int lda, int *pivots, double *b, int ldb) {
    (void)layout, (void)nrhs, (void)lda, (void)pivots, (void)ldb;
    return 1000 + (int)cblas_ddot(n, a, 1, b, 1);
}
