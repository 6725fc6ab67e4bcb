/* Stands for libcusparse.so.MAJOR: handles with a mode, descriptors, and products that launch one kernel. */
#include "cusparse.h"
#include "launch.h"

#include <stdlib.h>

struct cusparse_handle { int mode; cudaStream_t stream; };
struct cusparse_object { int64_t rows; };

EXPORT int cusparseGetProperty(int type, int *value)
{
    if (value)
        *value = type == 0 ? MAJOR : type == 1 ? 5 : 0;
    return 0;
}

EXPORT int cusparseCreate(cusparseHandle_t *handle)
{
    if (!handle)
        return SPARSE_INVALID_VALUE;
    *handle = calloc(1, sizeof **handle);
    return 0;
}

EXPORT int cusparseDestroy(cusparseHandle_t handle)
{
    free(handle);
    return 0;
}

EXPORT int cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return SPARSE_INVALID_VALUE;
    handle->stream = stream;
    return 0;
}

EXPORT int cusparseSetPointerMode(cusparseHandle_t handle, int mode)
{
    if (!handle || (mode != SPARSE_HOST && mode != SPARSE_DEVICE))
        return SPARSE_INVALID_VALUE;
    handle->mode = mode;
    return 0;
}

EXPORT const char *cusparseGetErrorString(int status)
{
    return status == SPARSE_INVALID_VALUE ? "an invalid value" : status == SPARSE_ZERO_PIVOT ? "zero pivot" : status ? "unknown" : "success";
}

static int make(struct cusparse_object **object, int64_t rows)
{
    if (!object || rows < 0)
        return SPARSE_INVALID_VALUE;
    *object = malloc(sizeof **object);
    (*object)->rows = rows;
    return 0;
}

EXPORT int cusparseCreateCsr(cusparseSpMatDescr_t *mat, int64_t rows, int64_t cols, int64_t nnz, void *offsets, void *columns,
                             void *values, int offsets_type, int columns_type, int base, int type)
{
    return make(mat, rows);
}

EXPORT int cusparseCreateDnVec(cusparseDnVecDescr_t *vec, int64_t size, void *values, int type) { return make(vec, size); }

EXPORT int cusparseDestroySpMat(cusparseSpMatDescr_t mat)
{
    free(mat);
    return 0;
}

EXPORT int cusparseDestroyDnVec(cusparseDnVecDescr_t vec)
{
    free(vec);
    return 0;
}

EXPORT int cusparseSpMV_bufferSize(cusparseHandle_t handle, int op, const void *alpha, cusparseSpMatDescr_t mat,
                                   cusparseDnVecDescr_t x, const void *beta, cusparseDnVecDescr_t y, int compute, int alg,
                                   size_t *size)
{
    if (!mat || !size)
        return SPARSE_INVALID_VALUE;
    *size = mat->rows * 8;
    return 0;
}

EXPORT int cusparseSpMV(cusparseHandle_t handle, int op, const void *alpha, cusparseSpMatDescr_t mat, cusparseDnVecDescr_t x,
                        const void *beta, cusparseDnVecDescr_t y, int compute, int alg, void *buffer)
{
    return handle && mat && alpha ? launch("spmv", handle->stream) : SPARSE_INVALID_VALUE;
}

EXPORT int cusparseSbsrmv(cusparseHandle_t handle, int dir, int op, int mb, int nb, int nnzb, const float *alpha,
                          cusparseMatDescr_t desc, const float *values, const int *rows, const int *columns, int block,
                          const float *x, const float *beta, float *y)
{
    return handle && alpha ? launch("spmv", handle->stream) : SPARSE_INVALID_VALUE;
}

EXPORT int cusparseXcsrsv2_zeroPivot(cusparseHandle_t handle, csrsv2Info_t info, int *position)
{
    if (!handle)
        return SPARSE_INVALID_VALUE;
    if (handle->mode == SPARSE_HOST)
        *position = 3;
    return SPARSE_ZERO_PIVOT;
}
