/* The iteration of the CLUST article: 13 clSetKernelArg, one launch, one blocking
 * read, one clFinish; 14 calls that return at once and 2 that make a command.
 *
 *   linked [-t] [iterations=100] [width=10] [height=10]
 *
 * -t prints the median microseconds per iteration of five rounds.
 */
#include "iteration.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int timed = argc > 1 && strcmp(argv[1], "-t") == 0;
    argc -= timed;
    argv += timed;
    int n = arg_or(argc, argv, 1, 100);
    int width = arg_or(argc, argv, 2, 10), height = arg_or(argc, argv, 3, 10);
    CHECK(n > 0 && width > 0 && height > 0);

    struct dev d = dev_open();
    struct image m = image_open(&d, width, height);

    if (timed) {
        double us[5];
        iterate(&m, 0); /* the first launch compiles */
        for (int round = 0; round < 5; round++) {
            double start = now_us();
            for (int i = 0; i < n; i++)
                iterate(&m, i);
            us[round] = (now_us() - start) / n;
        }
        verify(&m, n - 1);
        qsort(us, 5, sizeof *us, by_value);
        printf("us_per_iteration %.3f\n", us[2]);
    } else {
        for (int i = 0; i < n; i++) {
            iterate(&m, i);
            verify(&m, i);
        }
        printf("%d iterations of %d x %d verified\n", n, width, height);
    }

    image_close(&m);
    dev_close(&d);
    expect_print();
    return 0;
}
