/* What the programs here use of cuSPARSE. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct cusparse_handle *cusparseHandle_t;
typedef struct cusparse_object *cusparseSpMatDescr_t, *cusparseDnVecDescr_t, *cusparseMatDescr_t, *csrsv2Info_t;
enum { SPARSE_INVALID_VALUE = 3, SPARSE_ZERO_PIVOT = 9 };
enum { SPARSE_HOST = 0, SPARSE_DEVICE = 1, R_32F = 0, R_64F = 1, C_32F = 4, INDEX_32I = 2 };
enum { SPMAT_FILL_MODE = 0, FILL_MODE_UPPER = 1 };

int cusparseGetProperty(int type, int *value);
int cusparseCreate(cusparseHandle_t *handle);
int cusparseDestroy(cusparseHandle_t handle);
int cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream);
int cusparseSetPointerMode(cusparseHandle_t handle, int mode);
const char *cusparseGetErrorString(int status);
int cusparseCreateCsr(cusparseSpMatDescr_t *mat, int64_t rows, int64_t cols, int64_t nnz, void *offsets, void *columns,
                      void *values, int offsets_type, int columns_type, int base, int type);
int cusparseDestroySpMat(cusparseSpMatDescr_t mat);
int cusparseSpMatSetAttribute(cusparseSpMatDescr_t mat, int attribute, void *data, size_t size);
int cusparseCreateDnVec(cusparseDnVecDescr_t *vec, int64_t size, void *values, int type);
int cusparseDestroyDnVec(cusparseDnVecDescr_t vec);
int cusparseSpMV_bufferSize(cusparseHandle_t handle, int op, const void *alpha, cusparseSpMatDescr_t mat,
                            cusparseDnVecDescr_t x, const void *beta, cusparseDnVecDescr_t y, int compute, int alg,
                            size_t *size);
int cusparseSpMV(cusparseHandle_t handle, int op, const void *alpha, cusparseSpMatDescr_t mat, cusparseDnVecDescr_t x,
                 const void *beta, cusparseDnVecDescr_t y, int compute, int alg, void *buffer);
int cusparseSbsrmv(cusparseHandle_t handle, int dir, int op, int mb, int nb, int nnzb, const float *alpha,
                   cusparseMatDescr_t desc, const float *values, const int *rows, const int *columns, int block,
                   const float *x, const float *beta, float *y);
int cusparseXcsrsv2_zeroPivot(cusparseHandle_t handle, csrsv2Info_t info, int *position);
