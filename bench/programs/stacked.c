/* The cost of layers that stand on each other, on libraries that do nothing: in a range of the program's a product,
 * which is a launch of the runtime's, which is one of the driver's.
 *
 *   stacked [-n calls in a loop=5000] [-r rounds=10] [-p pause in ms=20]
 */
#include "../../include/hetrace.h"
#include "bench.h"

int cudaSetDevice(int);
int cublasCreate_v2(void **);
int cublasSgemm_v2(void *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);

enum { WARM = 500 };

static void *handle;

static void stack(long n)
{
    const float one = 1, zero = 0;
    static float a, b, c;
    for (long i = 0; i < n; i++) {
        hetrace_push("step");
        cublasSgemm_v2(handle, 0, 0, 1, 1, 1, &one, &a, 1, &b, 1, &zero, &c, 1);
        hetrace_pop();
    }
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv, (struct options){10, 20, 5000});
    calibrate();
    if (cudaSetDevice(0) || cublasCreate_v2(&handle))
        return 1;
    ROUNDS(&o, "stack", o.most, stack(WARM), stack(o.most));
    return 0;
}
