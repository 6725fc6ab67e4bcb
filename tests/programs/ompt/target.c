/*
 * Uses OpenMP's constructs for devices on the device that is the host itself, and prints how often, as the code says.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

int main(void)
{
    double *x = malloc(N * sizeof *x);
    int targets = 0, updates = 0, enters = 0, exits = 0;
    for (int i = 0; i < N; i++)
        x[i] = i;
    enters++;
    #pragma omp target enter data map(to : x[0:N])
    for (int round = 0; round < 3; round++) {
        targets++;
        #pragma omp target map(x[0:N])
        for (int i = 0; i < N; i++)
            x[i] *= 2;
    }
    updates++;
    #pragma omp target update from(x[0:N])
    exits++;
    #pragma omp target exit data map(from : x[0:N])
    printf("target %d\nupdate %d\nenter %d\nexit %d\nbytes %zu\nvalue %g\n", targets, updates, enters, exits, N * sizeof *x,
           x[1]);
    return 0;
}
