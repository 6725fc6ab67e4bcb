/* Factorizations and eigenvalues of dense matrices. `solve misuse` leaves a handle behind. */
#include "cusolver.h"
#include "program.h"

int main(int argc, char **argv)
{
    cusolverDnHandle_t handle;
    float low = -1.5f, high = 2.5f;
    int lwork, iterations;
    int64_t found;
    OK(cusolverDnCreate, &handle);
    if (argc > 1) {
        counted();
        return 0;
    }
    OK(cusolverDnSetStream, handle, NULL);
    OK(cusolverDnSgetrf_bufferSize, handle, 512, 256, DEVICE, 512, &lwork);
    for (int i = 0; i < 3; i++)
        OK(cusolverDnSgetrf, handle, 512, 256, DEVICE, 512, DEVICE, DEVICE, DEVICE);
    OK(cusolverDnXsyevdx, handle, NULL, 1, 1003, 0, 128, 0, DEVICE, 128, &low, &high, 0, 0, &found, 0, DEVICE, 0, DEVICE, 4096,
       NULL, 0, DEVICE);
    OK(cusolverDnSSgesv, handle, 64, 1, DEVICE, 64, DEVICE, DEVICE, 64, DEVICE, 64, DEVICE, 4096, &iterations, DEVICE);
    errno = 42;
    int refused = CALL(cusolverDnSgetrf, handle, -1, 256, DEVICE, 512, DEVICE, DEVICE, DEVICE);
    printf("lwork %d, found %ld, iterations %d, refused %d, errno %d\n", lwork, found, iterations, refused, errno);
    OK(cusolverDnDestroy, handle);
    counted();
    return 0;
}
