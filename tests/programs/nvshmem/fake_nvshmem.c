/* Stands for libnvshmem_host.so.3 in a job of two, of which this is the first: what is put, got and gathered is copied on this
 * device, by the driver, as the real library does between devices that see each other. What is not here, the library has
 * from the model (tests/src/fake_nvshmem.rs). */
#include "nvshmem.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define COPY(bytes, stream) cuMemcpyDtoDAsync_v2((uint64_t)dest, (uint64_t)source, bytes, stream)

static nvshmem_team_t teams = 16;

EXPORT int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *id) {
    memset(id, 7, sizeof *id);
    return 0;
}
EXPORT int nvshmemx_hostlib_init_attr(unsigned int flags, void *attr) {
    (void)flags, (void)attr;
    return 0;
}
EXPORT int nvshmemx_init_status(void) { return 2; }
EXPORT int nvshmem_my_pe(void) { return 0; }
EXPORT int nvshmem_n_pes(void) { return 2; }
EXPORT void nvshmem_info_get_version(int *major, int *minor) { *major = 3, *minor = 8; }
EXPORT void nvshmem_info_get_name(char *name) { strcpy(name, "a fake of NVSHMEM"); }
EXPORT void *nvshmem_malloc(size_t size) {
    uint64_t address = 0;
    return cuMemAlloc_v2(&address, size) ? NULL : (void *)address;
}
EXPORT void *nvshmem_calloc(size_t count, size_t size) { return nvshmem_malloc(count * size); }
EXPORT void nvshmem_free(void *ptr) { cuMemFree_v2((uint64_t)ptr); }
EXPORT void *nvshmem_ptr(const void *ptr, int pe) { return pe ? NULL : (void *)ptr; }
EXPORT int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride, int size, const nvshmem_team_config_t *config,
                                      long mask, nvshmem_team_t *team) {
    (void)parent, (void)start, (void)stride, (void)config, (void)mask;
    if (size > 2)
        return INVALID_VALUE;
    *team = teams++;
    return 0;
}
EXPORT int nvshmem_team_n_pes(nvshmem_team_t team) { return team < teams ? 2 : -1; }
EXPORT void nvshmem_float_put(float *dest, const float *source, size_t n, int pe) {
    (void)pe;
    COPY(n * 4, NULL);
}
EXPORT void nvshmem_double_p(double *dest, double value, int pe) {
    (void)value, (void)pe;
    cuMemcpyDtoDAsync_v2((uint64_t)dest, (uint64_t)dest, 8, NULL);
}
EXPORT short nvshmem_short_g(const short *source, int pe) {
    (void)source;
    return (short)(-7 - pe);
}
EXPORT void nvshmem_putmem(void *dest, const void *source, size_t bytes, int pe) {
    (void)pe;
    COPY(bytes, NULL);
}
EXPORT void nvshmem_get128(void *dest, const void *source, size_t n, int pe) {
    (void)pe;
    COPY(n * 16, NULL);
}
EXPORT void nvshmemx_int_put_signal_nbi_on_stream(int *dest, const int *source, size_t n, uint64_t *signal, uint64_t value, int op,
                                                  int pe, cudaStream_t stream) {
    (void)signal, (void)value, (void)op, (void)pe;
    COPY(n * 4, stream);
}
EXPORT void nvshmemx_getmem_on_stream(void *dest, const void *source, size_t bytes, int pe, cudaStream_t stream) {
    (void)pe;
    COPY(bytes, stream);
}
EXPORT int nvshmemx_float_sum_reduce_on_stream(nvshmem_team_t team, float *dest, const float *source, size_t n, cudaStream_t stream) {
    return team < teams ? COPY(n * 4, stream) : INVALID_VALUE;
}
EXPORT int nvshmem_double_broadcast(nvshmem_team_t team, double *dest, const double *source, size_t n, int root) {
    (void)team, (void)root;
    return COPY(n * 8, NULL);
}
EXPORT int nvshmemx_alltoallmem_on_stream(nvshmem_team_t team, void *dest, const void *source, size_t n, cudaStream_t stream) {
    (void)team;
    return COPY(n, stream);
}
EXPORT int nvshmem_int_fcollect(nvshmem_team_t team, int *dest, const int *source, size_t n) {
    (void)team;
    return COPY(n * 4, NULL);
}
