/* A library that calls a function of whatever library of linear algebra it is linked to. */
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy);

double dot(int times) {
    double x[2] = {1, 2}, y[2] = {3, 4}, sum = 0;
    for (int i = 0; i < times; i++)
        sum += cblas_ddot(2, x, 1, y, 1);
    return sum;
}
