/* What the programs here use of cuFFT. */
#pragma once
#include <stddef.h>

typedef struct CUstream_st *cudaStream_t;
typedef int cufftHandle;
enum { CUFFT_INVALID_PLAN = 1, CUFFT_INVALID_SIZE = 8 };
enum { CUFFT_C2C = 0x29, CUFFT_R2C = 0x2a, CUFFT_FORWARD = -1, CUFFT_INVERSE = 1, CUDA_R_16F = 2, CUDA_C_16F = 6 };

int cufftGetVersion(int *version);
int cufftGetProperty(int type, int *value);
int cufftCreate(cufftHandle *plan);
int cufftPlan1d(cufftHandle *plan, int nx, int type, int batch);
int cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                  int odist, int type, int batch);
int cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed, long long istride, long long idist,
                        int in, long long *onembed, long long ostride, long long odist, int out, long long batch,
                        size_t *work, int execution);
int cufftSetStream(cufftHandle plan, cudaStream_t stream);
int cufftExecC2C(cufftHandle plan, void *in, void *out, int direction);
int cufftExecR2C(cufftHandle plan, void *in, void *out);
int cufftXtExec(cufftHandle plan, void *in, void *out, int direction);
int cufftXtQueryPlan(cufftHandle plan, void *query, int type);
int cufftDestroy(cufftHandle plan);
