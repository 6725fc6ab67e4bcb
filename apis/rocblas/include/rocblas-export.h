/* What rocBLAS' build writes into a header of this name: how functions are exported. */
#pragma once
#define ROCBLAS_EXPORT
#define ROCBLAS_NO_EXPORT
#define ROCBLAS_DEPRECATED
#define ROCBLAS_DEPRECATED_EXPORT
#define ROCBLAS_DEPRECATED_NO_EXPORT
