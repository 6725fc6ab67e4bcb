/* Calls of the runtime that call the driver: what they take without a tracer, which is what
 * `hetrace tally` should report of them. `bench/own_cost.py` compares the two.
 *
 *   own_cost CALLS-OF-THE-DRIVER STEPS [calls in a loop=5000] [rounds=20]
 *
 * With 0 calls the driver's function itself is called.
 */
#include "bench.h"

int cudaSetDevice(int);
int cudaMemGetInfo(size_t *, size_t *);
int cuMemGetInfo_v2(size_t *, size_t *);

int main(int argc, char **argv)
{
    size_t total = argc > 1 ? atoi(argv[1]) : 1, free = argc > 2 ? atoi(argv[2]) : 0;
    int n = argc > 3 ? atoi(argv[3]) : 5000, rounds = argc > 4 ? atoi(argv[4]) : 20;
    int (*call)(size_t *, size_t *) = total ? cudaMemGetInfo : cuMemGetInfo_v2;
    double ns[rounds];
    calibrate();
    if (cudaSetDevice(0))
        return 1;
    for (int i = -1; i < rounds; i++) {
        uint64_t start = ticks();
        for (int c = 0; c < n; c++)
            call(&free, &total);
        if (i >= 0)
            ns[i] = (ticks() - start) * ns_per_tick / n;
        usleep(20000);
    }
    print_rounds("call", ns, rounds);
    return 0;
}
