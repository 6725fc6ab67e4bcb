/* Products of a sparse matrix. `sparse device` gives scalars in memory that nobody may read, as that of a device is. */
#include "cusparse.h"
#include "program.h"

int main(int argc, char **argv)
{
    cusparseHandle_t handle;
    cusparseSpMatDescr_t mat;
    cusparseDnVecDescr_t x, y;
    float one = 1, half = 0.5f, complex_one[] = {1, -2};
    double two = 2, zero = 0;
    int upper = FILL_MODE_UPPER, position = -1;
    size_t bytes;
    void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(cusparseCreate, &handle);
    OK(cusparseSetStream, handle, NULL);
    OK(cusparseCreateCsr, &mat, 1000, 2000, 5000, DEVICE, DEVICE, DEVICE, INDEX_32I, INDEX_32I, 0, R_32F);
    OK(cusparseCreateDnVec, &x, 2000, DEVICE, R_32F);
    OK(cusparseCreateDnVec, &y, 1000, DEVICE, R_32F);
    if (argc > 1) {
        OK(cusparseSetPointerMode, handle, SPARSE_DEVICE);
        OK(cusparseSpMV, handle, 0, unreadable, mat, x, unreadable, y, R_32F, 0, DEVICE);
        OK(cusparseSbsrmv, handle, 0, 0, 4, 5, 6, unreadable, NULL, DEVICE, DEVICE, DEVICE, 2, DEVICE, unreadable, DEVICE);
        printf("pivot %d\n", CALL(cusparseXcsrsv2_zeroPivot, handle, NULL, unreadable));
        OK(cusparseSetPointerMode, handle, SPARSE_HOST);
    }
    OK(cusparseSpMatSetAttribute, mat, SPMAT_FILL_MODE, &upper, sizeof upper);
    OK(cusparseSpMV_bufferSize, handle, 0, &one, mat, x, &half, y, R_32F, 0, &bytes);
    for (int i = 0; i < 3; i++)
        OK(cusparseSpMV, handle, 0, &one, mat, x, &half, y, R_32F, 0, DEVICE);
    OK(cusparseSpMV, handle, 1, &two, mat, x, &zero, y, R_64F, 0, DEVICE);
    OK(cusparseSpMV, handle, 2, complex_one, mat, x, complex_one, y, C_32F, 0, DEVICE);
    OK(cusparseSbsrmv, handle, 0, 0, 4, 5, 6, &half, NULL, DEVICE, DEVICE, DEVICE, 2, DEVICE, &one, DEVICE);
    errno = 42;
    int pivot = CALL(cusparseXcsrsv2_zeroPivot, handle, NULL, &position);
    printf("%zu bytes, pivot %d at %d, errno %d: %s\n", bytes, pivot, position, errno, CALL(cusparseGetErrorString, pivot));
    OK(cusparseDestroyDnVec, x);
    OK(cusparseDestroyDnVec, y);
    OK(cusparseDestroySpMat, mat);
    OK(cusparseDestroy, handle);
    counted();
    return 0;
}
