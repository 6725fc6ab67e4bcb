/* A whole small program (Table 4 of the CLUST article): 14 calls that return at once and
 * 2 that make a command, on images of the article's sizes. Nanoseconds per iteration.
 *
 *   iteration [-n loop=100] [-r rounds=10] [-p pause in ms=20] [WIDTH HEIGHT]
 */
#include "bench.h"
#include "iteration.h"

static void measure(const struct options *o, struct dev *d, int width, int height)
{
    char key[64];
    struct image m = image_open(d, width, height);
    iterate(&m, 0); /* compiles */
    snprintf(key, sizeof key, "iteration.%dx%d", width, height);
    ROUNDS(o, key, o->most, iterate(&m, 0), for (long i = 0; i < o->most; i++) iterate(&m, i));
    verify(&m, o->most - 1);
    image_close(&m);
}

int main(int argc, char **argv)
{
    static const int sizes[][2] = {{1, 1},     {10, 1},     {10, 10},    {10, 100},
                                   {100, 100}, {1000, 100}, {1280, 720}, {1920, 1080}};
    struct options o = options_of(argc, argv, (struct options){10, 20, 100});
    calibrate();
    struct dev d = dev_open();
    if (argc - optind == 2)
        measure(&o, &d, atoi(argv[optind]), atoi(argv[optind + 1]));
    else
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            measure(&o, &d, sizes[i][0], sizes[i][1]);
    dev_close(&d);
    return 0;
}
