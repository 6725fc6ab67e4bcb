/* A function of rocBLAS 3 whose form has changed since. */
#define BEFORE_4
#include "rocblas.h"

#include <stdio.h>

int main(void) {
    float alpha = 1;
    rocblas_handle handle;
    int made = rocblas_create_handle(&handle);
    int status = rocblas_strmm(handle, left, upper, none, unit, 9, 9, &alpha, (void *)8, 9, (void *)8, 9);
    printf("old %d %d\n", made, status);
    return rocblas_destroy_handle(handle);
}
