/* Stands for a HIP that is made of HSA: each copy of the program's is one of HSA's. */
#include "hsa.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int hipMemcpy(void *dst, const void *src, size_t size, int kind) {
    hsa_agent_t from = {0x10}, to = {0x20};
    hsa_signal_t done;
    (void)kind;
    hsa_signal_create(1, 0, NULL, &done);
    hsa_amd_memory_async_copy(dst, to, src, from, size, 0, NULL, done);
    hsa_signal_wait_scacquire(done, CONDITION_LT, 1, UINT64_MAX, WAIT_BLOCKED);
    return hsa_signal_destroy(done);
}
