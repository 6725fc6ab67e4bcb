/* Stands for HSA's runtime: an agent whose queues run their packets when the doorbell is rung, and copies that are done at
 * once. What is not here, the library has from the model (tests/src/fake_hsa.rs). */
#include "hsa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { CPU = 0x10, GPU = 0x20, POOL = 0x30 };
struct signal { hsa_signal_value_t value; hsa_queue_t *rings; };
struct queue { hsa_queue_t shown; uint64_t written, read; };
static int users;

static struct signal *signal_of(hsa_signal_t signal) { return (struct signal *)signal.handle; }

EXPORT hsa_status_t hsa_init(void) {
    users++;
    return 0;
}

EXPORT hsa_status_t hsa_shut_down(void) { return users-- > 0 ? 0 : HSA_STATUS_ERROR_NOT_INITIALIZED; }

EXPORT hsa_status_t hsa_status_string(hsa_status_t status, const char **text) {
    switch (status) {
    case 0: *text = "HSA_STATUS_SUCCESS: The function has been executed successfully."; return 0;
    case HSA_STATUS_ERROR_INVALID_ARGUMENT: *text = "HSA_STATUS_ERROR_INVALID_ARGUMENT: One argument is none."; return 0;
    default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

EXPORT hsa_status_t hsa_system_get_info(int attribute, void *value) {
    if (!users)
        return HSA_STATUS_ERROR_NOT_INITIALIZED;
    if (attribute == SYSTEM_VERSION_MAJOR)
        *(uint16_t *)value = 1;
    else
        *(uint64_t *)value = 1234567;
    return 0;
}

EXPORT hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void *), void *data) {
    hsa_agent_t agents[] = {{CPU}, {GPU}};
    for (int i = 0; i < 2; i++) {
        hsa_status_t status = callback(agents[i], data);
        if (status)
            return status;
    }
    return 0;
}

EXPORT hsa_status_t hsa_agent_get_info(hsa_agent_t agent, int attribute, void *value) {
    switch (attribute) {
    case AGENT_NAME: memcpy(value, agent.handle == GPU ? "gfx90a\0" : "a host\0", 8); return 0;
    case AGENT_GRID_MAX_DIM: *(hsa_dim3_t *)value = (hsa_dim3_t){4096, 64, 1}; return 0;
    case AGENT_DEVICE: *(int *)value = agent.handle == GPU; return 0;
    case AGENT_COMPUTE_UNITS: *(uint32_t *)value = 110; return 0;
    case AGENT_NEW: *(uint32_t *)value = 7; return 0;
    default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
}

EXPORT hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t, void *),
                                                       void *data) {
    return callback((hsa_amd_memory_pool_t){POOL + agent.handle}, data);
}

EXPORT hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, int attribute, void *value) {
    if (pool.handle < POOL)
        return INVALID_MEMORY_POOL;
    if (attribute == POOL_SEGMENT)
        *(int *)value = 0;
    else
        *(size_t *)value = 64 << 20;
    return 0;
}

EXPORT hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **ptr) {
    (void)flags;
    if (pool.handle < POOL)
        return INVALID_MEMORY_POOL;
    *ptr = malloc(size);
    return 0;
}

EXPORT hsa_status_t hsa_amd_memory_pool_free(void *ptr) {
    free(ptr);
    return 0;
}

EXPORT hsa_status_t hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, size_t size,
                                              uint32_t n, const hsa_signal_t *waited, hsa_signal_t completion) {
    (void)dst_agent, (void)src_agent, (void)n, (void)waited;
    if (!dst || !src)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    memcpy(dst, src, size);
    signal_of(completion)->value--;
    return 0;
}

EXPORT hsa_status_t hsa_amd_memory_fill(void *ptr, uint32_t value, size_t count) {
    for (size_t i = 0; i < count; i++)
        ((uint32_t *)ptr)[i] = value;
    return 0;
}

EXPORT hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t n, const hsa_agent_t *consumers, hsa_signal_t *signal) {
    (void)n, (void)consumers;
    struct signal *made = calloc(1, sizeof *made);
    made->value = value;
    signal->handle = (uint64_t)made;
    return 0;
}

EXPORT hsa_status_t hsa_signal_destroy(hsa_signal_t signal) {
    if (!signal.handle)
        return HSA_STATUS_ERROR_INVALID_SIGNAL;
    free(signal_of(signal));
    return 0;
}

EXPORT hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal) { return signal_of(signal)->value; }

/* A doorbell: the packets have run. */
EXPORT void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
    struct signal *it = signal_of(signal);
    it->value = value;
    if (it->rings)
        ((struct queue *)it->rings)->read = ((struct queue *)it->rings)->written;
}

EXPORT void hsa_signal_subtract_screlease(hsa_signal_t signal, hsa_signal_value_t value) { signal_of(signal)->value -= value; }

EXPORT hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, int condition, hsa_signal_value_t value, uint64_t timeout,
                                                    int how) {
    (void)condition, (void)value, (void)timeout, (void)how;
    return signal_of(signal)->value;
}

EXPORT uint32_t hsa_amd_signal_wait_any(uint32_t n, hsa_signal_t *signals, int *conditions, hsa_signal_value_t *values,
                                        uint64_t timeout, int how, hsa_signal_value_t *satisfying) {
    (void)conditions, (void)values, (void)timeout, (void)how;
    *satisfying = signal_of(signals[n - 1])->value;
    return n - 1;
}

EXPORT hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type,
                                     void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_size,
                                     uint32_t group_size, hsa_queue_t **queue) {
    (void)agent, (void)callback, (void)data, (void)private_size, (void)group_size;
    if (!size || (size & (size - 1)))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    struct queue *made = calloc(1, sizeof *made);
    made->shown.type = type;
    made->shown.size = size;
    hsa_signal_create(0, 0, NULL, &made->shown.doorbell_signal);
    signal_of(made->shown.doorbell_signal)->rings = &made->shown;
    *queue = &made->shown;
    return 0;
}

EXPORT hsa_status_t hsa_queue_destroy(hsa_queue_t *queue) {
    hsa_signal_destroy(queue->doorbell_signal);
    free(queue);
    return 0;
}

EXPORT uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t *queue, uint64_t value) {
    struct queue *it = (struct queue *)queue;
    it->written += value;
    return it->written - value;
}

EXPORT uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue) { return ((const struct queue *)queue)->read; }

EXPORT hsa_status_t hsa_code_object_reader_create_from_memory(const void *code, size_t size, hsa_code_object_reader_t *reader) {
    (void)code, (void)size;
    reader->handle = 0x700;
    return 0;
}

EXPORT hsa_status_t hsa_executable_create_alt(int profile, int rounding, const char *options, hsa_executable_t *executable) {
    (void)profile, (void)rounding, (void)options;
    executable->handle = 0x800;
    return 0;
}

EXPORT hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                          hsa_code_object_reader_t reader, const char *options,
                                                          hsa_loaded_code_object_t *loaded) {
    (void)executable, (void)agent, (void)reader, (void)options;
    if (loaded)
        loaded->handle = 0x880;
    return 0;
}

EXPORT hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *name, const hsa_agent_t *agent,
                                                      hsa_executable_symbol_t *symbol) {
    (void)executable, (void)name, (void)agent;
    symbol->handle = 0x900;
    return 0;
}

EXPORT hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol, int attribute, void *value) {
    (void)symbol;
    if (attribute == SYMBOL_KERNEL_OBJECT)
        *(uint64_t *)value = 0x7f00dead0000;
    else
        *(int *)value = 1;
    return 0;
}

/* What tables have: functions of the runtime's inside, which do what the exported ones do and more. */
static int images;

static hsa_status_t image_destroy(hsa_agent_t agent, hsa_ext_image_t image) {
    (void)agent;
    images += (int)image.handle;
    return images < 100 ? 0 : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static hsa_status_t query_host_address(const void *device, const void **host) {
    *host = (const char *)device + 0x1000;
    return 0;
}

EXPORT hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t major, size_t length, void *table) {
    void *all[16] = {0};
    if (major != 1)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (extension == EXTENSION_IMAGES)
        all[3] = (void *)image_destroy;
    else if (extension == EXTENSION_LOADER)
        all[0] = (void *)query_host_address;
    else
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    memcpy(table, all, length < sizeof all ? length : sizeof all);
    return 0;
}

EXPORT hsa_status_t hsa_system_get_extension_table(uint16_t extension, uint16_t major, uint16_t minor, void *table) {
    size_t entries = extension == EXTENSION_IMAGES ? (minor ? 14 : 10) : 3 + 2 * (minor > 0);
    return hsa_system_get_major_extension_table(extension, major, entries * sizeof(void *), table);
}
