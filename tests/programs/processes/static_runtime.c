/* A program with the CUDA runtime inside: linked to libcudart_static.a of a wheel. Prints what
 * it returns; what is called of the driver, the driver itself says. */
#include <stdio.h>

int cudaDriverGetVersion(int *);
int cudaRuntimeGetVersion(int *);
int cudaGetDeviceCount(int *);
int cudaMalloc(void **, unsigned long);
int cudaGetLastError(void);
const char *cudaGetErrorString(int);

int main(void)
{
    int number = -1, error = cudaDriverGetVersion(&number);
    printf("driver %d %d\n", error, number);
    error = cudaRuntimeGetVersion(&number);
    printf("runtime %d %d\n", error, number);
    error = cudaGetDeviceCount(&number);
    printf("devices %d %d\n", error, number);
    void *address = NULL;
    error = cudaMalloc(&address, 100);
    printf("malloc %d %s, then %d\n", error, cudaGetErrorString(error), cudaGetLastError());
    return 0;
}
