/* What the programs here use of NVSHMEM, and of the driver below it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t;
typedef int32_t nvshmem_team_t;
typedef struct { int version, num_contexts; char padding[56]; } nvshmem_team_config_t;
typedef struct { char bytes[128]; } nvshmemx_uniqueid_t;

enum { TEAM_WORLD = 0, INVALID_VALUE = 1, SIGNAL_SET = 9, CMP_GE = 5 };

int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *id);
int nvshmemx_hostlib_init_attr(unsigned int flags, void *attr);
void nvshmemx_hostlib_finalize(void);
int nvshmemx_init_status(void);
int nvshmem_my_pe(void);
int nvshmem_n_pes(void);
void nvshmem_info_get_version(int *major, int *minor);
void nvshmem_info_get_name(char *name);
void *nvshmem_malloc(size_t size);
void *nvshmem_calloc(size_t count, size_t size);
void nvshmem_free(void *ptr);
void *nvshmem_ptr(const void *ptr, int pe);
int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride, int size, const nvshmem_team_config_t *config, long mask,
                               nvshmem_team_t *team);
int nvshmem_team_n_pes(nvshmem_team_t team);
void nvshmem_team_destroy(nvshmem_team_t team);
void nvshmem_float_put(float *dest, const float *source, size_t n, int pe);
void nvshmem_double_p(double *dest, double value, int pe);
short nvshmem_short_g(const short *source, int pe);
void nvshmem_putmem(void *dest, const void *source, size_t bytes, int pe);
void nvshmem_get128(void *dest, const void *source, size_t n, int pe);
int nvshmem_long_atomic_fetch_add(long *dest, long value, int pe);
void nvshmemx_int_put_signal_nbi_on_stream(int *dest, const int *source, size_t n, uint64_t *signal, uint64_t value, int op, int pe,
                                           cudaStream_t stream);
void nvshmemx_getmem_on_stream(void *dest, const void *source, size_t bytes, int pe, cudaStream_t stream);
void nvshmemx_signal_wait_until_on_stream(uint64_t *signal, int cmp, uint64_t value, cudaStream_t stream);
int nvshmemx_float_sum_reduce_on_stream(nvshmem_team_t team, float *dest, const float *source, size_t n, cudaStream_t stream);
int nvshmem_double_broadcast(nvshmem_team_t team, double *dest, const double *source, size_t n, int root);
int nvshmemx_alltoallmem_on_stream(nvshmem_team_t team, void *dest, const void *source, size_t n, cudaStream_t stream);
int nvshmem_int_fcollect(nvshmem_team_t team, int *dest, const int *source, size_t n);
void nvshmem_barrier_all(void);
int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream);
void nvshmem_quiet(void);

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuStreamCreate(cudaStream_t *stream, unsigned int flags);
int cuStreamSynchronize(cudaStream_t stream);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, cudaStream_t stream);
