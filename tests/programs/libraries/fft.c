/* Transforms as a framework makes them. `fft misuse` uses a plan that is gone, and leaves another behind. */
#include "cufft.h"
#include "program.h"

static void misuse(void)
{
    cufftHandle plan, left;
    OK(cufftPlan1d, &plan, 64, CUFFT_C2C, 1);
    OK(cufftPlan1d, &left, 64, CUFFT_C2C, 1);
    OK(cufftDestroy, plan);
    printf("gone %d\n", CALL(cufftExecC2C, plan, DEVICE, DEVICE, CUFFT_FORWARD));
}

int main(int argc, char **argv)
{
    cufftHandle plan, many, half;
    int version, n[] = {32, 64}, embed[] = {32, 66};
    long long wide[] = {128, 256, 512}, factors[12];
    size_t work = 0;
    if (argc > 1) {
        misuse();
        counted();
        return 0;
    }
    OK(cufftGetVersion, &version);
    OK(cufftPlan1d, &plan, 1024, CUFFT_C2C, 8);
    OK(cufftPlanMany, &many, 2, n, embed, 1, 2112, NULL, 1, 2048, CUFFT_R2C, 16);
    OK(cufftCreate, &half);
    OK(cufftXtMakePlanMany, half, 3, wide, NULL, 1, 0, CUDA_R_16F, NULL, 1, 0, CUDA_C_16F, 4, &work, CUDA_C_16F);
    OK(cufftSetStream, plan, NULL);
    for (int i = 0; i < 5; i++)
        OK(cufftExecC2C, plan, DEVICE, DEVICE, CUFFT_FORWARD);
    OK(cufftExecC2C, plan, DEVICE, DEVICE, CUFFT_INVERSE);
    OK(cufftExecR2C, many, DEVICE, DEVICE);
    OK(cufftXtExec, half, DEVICE, DEVICE, CUFFT_FORWARD);
    OK(cufftXtQueryPlan, plan, factors, 0);
    errno = 42;
    int refused = CALL(cufftPlan1d, &half, -1, CUFFT_C2C, 1);
    printf("version %d, work %zu, factors %lld %lld, refused %d, errno %d\n", version, work, factors[1], factors[2], refused,
           errno);
    OK(cufftDestroy, plan);
    OK(cufftDestroy, many);
    OK(cufftDestroy, half);
    counted();
    return 0;
}
