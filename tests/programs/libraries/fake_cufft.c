/* Stands for libcufft.so.MAJOR: plans that check their sizes, and transforms that launch one kernel. Every function that
 * the model has is exported; those that do nothing here are made by tests/src/fake_libraries.rs. */
#include "cufft.h"
#include "launch.h"

#include <string.h>

enum { PLANS = 64 };
static struct { int lives; cudaStream_t stream; } plans[PLANS];

EXPORT int cufftGetVersion(int *version)
{
    if (version)
        *version = MAJOR * 1000 + 300;
    return 0;
}

EXPORT int cufftGetProperty(int type, int *value)
{
    if (value)
        *value = type == 0 ? MAJOR : type == 1 ? 3 : 0;
    return 0;
}

EXPORT int cufftCreate(cufftHandle *plan)
{
    for (int i = 1; plan && i < PLANS; i++)
        if (!plans[i].lives) {
            plans[i].lives = 1;
            *plan = i;
            return 0;
        }
    return CUFFT_INVALID_PLAN;
}

EXPORT int cufftPlan1d(cufftHandle *plan, int nx, int type, int batch)
{
    return nx <= 0 ? CUFFT_INVALID_SIZE : cufftCreate(plan);
}

EXPORT int cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                         int ostride, int odist, int type, int batch)
{
    return rank <= 0 || n[0] <= 0 ? CUFFT_INVALID_SIZE : cufftCreate(plan);
}

static int is_good(cufftHandle plan) { return plan > 0 && plan < PLANS && plans[plan].lives; }

EXPORT int cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride,
                               long long idist, int in, long long *onembed, long long ostride, long long odist, int out,
                               long long batch, size_t *work, int execution)
{
    if (!is_good(plan))
        return CUFFT_INVALID_PLAN;
    if (work)
        *work = 4096 * rank;
    return 0;
}

EXPORT int cufftSetStream(cufftHandle plan, cudaStream_t stream)
{
    if (!is_good(plan))
        return CUFFT_INVALID_PLAN;
    plans[plan].stream = stream;
    return 0;
}

static int execute(cufftHandle plan)
{
    return is_good(plan) ? launch("fft", plans[plan].stream) : CUFFT_INVALID_PLAN;
}

EXPORT int cufftExecC2C(cufftHandle plan, void *in, void *out, int direction) { return execute(plan); }
EXPORT int cufftExecR2C(cufftHandle plan, void *in, void *out) { return execute(plan); }
EXPORT int cufftXtExec(cufftHandle plan, void *in, void *out, int direction) { return execute(plan); }

EXPORT int cufftXtQueryPlan(cufftHandle plan, void *query, int type)
{
    long long factors[] = {1024, 2, 512};
    if (!is_good(plan))
        return CUFFT_INVALID_PLAN;
    memset(query, 0, 96);
    memcpy(query, factors, sizeof factors);
    return 0;
}

EXPORT int cufftDestroy(cufftHandle plan)
{
    if (!is_good(plan))
        return CUFFT_INVALID_PLAN;
    plans[plan].lives = 0;
    return 0;
}
