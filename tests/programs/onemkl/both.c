/* A program that is linked to the other library, or to nothing, and opens plugins that are linked to either. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef LINKED
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy);
int LAPACKE_dgesv(int layout, int n, int nrhs, double *a, int lda, int *pivots, double *b, int ldb);
#endif

int main(int count, char **plugins) {
    double x[2] = {1, 2};
#ifdef LINKED
    int pivots[2];
    printf("linked %.0f %d\n", cblas_ddot(7, x, 1, x, 1), LAPACKE_dgesv(101, 7, 1, x, 1, pivots, x, 1));
#endif
    for (int i = 1; i < count; i++) {
        void *plugin = dlopen(plugins[i], RTLD_NOW | RTLD_LOCAL);
        if (!plugin)
            return fprintf(stderr, "%s\n", dlerror()), 2;
        double (*dot)(int) = (double (*)(int))dlsym(plugin, "dot");
        printf("%.0f %.0f\n", dot(1), dot(50));
        double (*asked)(int, const double *, int, const double *, int) =
            (double (*)(int, const double *, int, const double *, int))dlsym(plugin, "cblas_ddot");
        printf("asked %.0f\n", asked(2, x, 1, x, 1));
    }
    return 0;
}
