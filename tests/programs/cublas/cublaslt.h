/* What the programs here use of cuBLASLt. */
#pragma once
#include "cublas.h"

typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef struct lt_handle *cublasLtHandle_t;
typedef struct lt_desc *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t, *cublasLtMatmulPreference_t;

enum { MATMUL_DESC_TRANSA = 3, MATMUL_DESC_EPILOGUE = 7, MATMUL_DESC_BIAS_POINTER = 8, EPILOGUE_RELU_BIAS = 6 };
enum { MATRIX_LAYOUT_ROWS = 2, PREF_MAX_WORKSPACE_BYTES = 1, ALGO_CONFIG_TILE_ID = 1 };

int cublasLtCreate(cublasLtHandle_t *handle);
int cublasLtDestroy(cublasLtHandle_t handle);
int cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, int compute, int scale);
int cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc);
int cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, int attribute, const void *value, size_t size);
int cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc, int attribute, void *value, size_t size, size_t *written);
int cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
int cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
int cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference);
int cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
int cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, int attribute, const void *value, size_t size);
int cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                   cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                   cublasLtMatmulPreference_t preference, int wanted,
                                   cublasLtMatmulHeuristicResult_t *results, int *found);
int cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                   cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                   const void *c, cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                   const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream);
