/*
 * A parallel region of GCC's own runtime, which has no tools.
 */
#include <stdio.h>

int main(void)
{
    int members = 0;
    #pragma omp parallel num_threads(3)
    #pragma omp atomic
    members++;
    printf("member %d\n", members);
    return 0;
}
