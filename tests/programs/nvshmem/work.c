/* The first of two processing elements. It counts its own calls and prints what they came to. */
#include "../hip/counted.h"
#include "nvshmem.h"

#include <errno.h>
#include <stdlib.h>

int main(void) {
    void *context;
    cudaStream_t stream;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    cuStreamCreate(&stream, 1);

    nvshmemx_uniqueid_t id;
    int major = 0, minor = 0;
    char name[64] = "";
    CALL(nvshmemx_get_uniqueid, &id);
    CALL(nvshmemx_hostlib_init_attr, 8, NULL);
    CALL(nvshmem_info_get_version, &major, &minor);
    CALL(nvshmem_info_get_name, name);
    int status = CALL(nvshmemx_init_status), me = CALL(nvshmem_my_pe), all = CALL(nvshmem_n_pes);
    printf("%s %d.%d, status %d, %d of %d\n", name, major, minor, status, me, all);

    char *memory = CALL(nvshmem_malloc, 1 << 16), *zeros = CALL(nvshmem_calloc, 64, 16);
    nvshmem_team_t team = -1, none = -1;
    nvshmem_team_config_t config = {1, 2, ""};
    int split = CALL(nvshmem_team_split_strided, TEAM_WORLD, 0, 1, 2, &config, 1, &team);
    printf("team %d, %d, of %d, far %d\n", split, team, CALL(nvshmem_team_n_pes, team), CALL(nvshmem_ptr, memory, 1) == NULL);

    CALL(nvshmem_float_put, (float *)memory, (float *)memory + 1024, 100, 1);
    CALL(nvshmem_double_p, (double *)memory, 2.5, 1);
    int got = CALL(nvshmem_short_g, (short *)memory, 1);
    CALL(nvshmem_putmem, memory, memory + 4096, 64, 1);
    CALL(nvshmem_get128, memory, memory + 4096, 3, 1);
    CALL(nvshmemx_int_put_signal_nbi_on_stream, (int *)memory, (int *)memory + 1024, 50, (uint64_t *)zeros, 1, SIGNAL_SET, 1, stream);
    CALL(nvshmemx_getmem_on_stream, memory, memory + 4096, 33, 1, stream);
    CALL(nvshmemx_signal_wait_until_on_stream, (uint64_t *)zeros, CMP_GE, 1, stream);

    int done = CALL(nvshmemx_float_sum_reduce_on_stream, team, (float *)memory, (float *)memory + 1024, 256, stream);
    done |= CALL(nvshmem_double_broadcast, TEAM_WORLD, (double *)memory, (double *)memory + 1024, 10, 1);
    done |= CALL(nvshmemx_alltoallmem_on_stream, TEAM_WORLD, memory, memory + 4096, 20, stream);
    done |= CALL(nvshmem_int_fcollect, team, (int *)memory, (int *)memory + 1024, 30);
    CALL(nvshmem_barrier_all);
    done |= CALL(nvshmemx_barrier_on_stream, team, stream);
    CALL(nvshmem_quiet);
    cuStreamSynchronize(stream);

    errno = 42;
    int many = CALL(nvshmem_team_split_strided, TEAM_WORLD, 0, 1, 99, &config, 1, &none);
    int other = CALL(nvshmemx_float_sum_reduce_on_stream, 77, (float *)memory, (float *)memory, 1, stream);
    printf("got %d, done %d, refused %d %d, errno %d\n", got, done, many, other, errno);
    CALL(nvshmem_team_destroy, team);
    CALL(nvshmem_free, zeros);
    CALL(nvshmem_free, memory);
    CALL(nvshmemx_hostlib_finalize);
    counted();
    return 0;
}
