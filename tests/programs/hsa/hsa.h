/* What the programs here use of HSA. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int hsa_status_t;
enum { HSA_STATUS_SUCCESS, HSA_STATUS_INFO_BREAK };
enum { HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001, HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006, HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B };
enum { INVALID_MEMORY_POOL = 40 };

typedef struct { uint64_t handle; } hsa_agent_t, hsa_signal_t, hsa_isa_t, hsa_executable_t, hsa_code_object_reader_t;
typedef struct { uint64_t handle; } hsa_executable_symbol_t, hsa_loaded_code_object_t, hsa_amd_memory_pool_t, hsa_ext_image_t;
typedef int64_t hsa_signal_value_t;
typedef struct hsa_queue_s {
    uint32_t type, features;
    void *base_address;
    hsa_signal_t doorbell_signal;
    uint32_t size, reserved1;
    uint64_t id;
} hsa_queue_t;
typedef struct { uint32_t x, y, z; } hsa_dim3_t;

enum { SYSTEM_VERSION_MAJOR = 0, SYSTEM_TIMESTAMP = 2 };
enum { AGENT_NAME = 0, AGENT_GRID_MAX_DIM = 9, AGENT_DEVICE = 17, AGENT_COMPUTE_UNITS = 0xA002, AGENT_NEW = 0xAFFF };
enum { POOL_SEGMENT = 0, POOL_SIZE = 2 };
enum { SYMBOL_KERNEL_OBJECT = 22, SYMBOL_KIND = 0 };
enum { EXTENSION_IMAGES = 1, EXTENSION_LOADER = 0x201 };
enum { CONDITION_EQ = 0, CONDITION_LT = 2, WAIT_BLOCKED = 0 };

hsa_status_t hsa_init(void);
hsa_status_t hsa_shut_down(void);
hsa_status_t hsa_status_string(hsa_status_t status, const char **text);
hsa_status_t hsa_system_get_info(int attribute, void *value);
hsa_status_t hsa_system_get_extension_table(uint16_t extension, uint16_t major, uint16_t minor, void *table);
hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t major, size_t length, void *table);
hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void *), void *data);
hsa_status_t hsa_agent_get_info(hsa_agent_t agent, int attribute, void *value);
hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t, void *), void *data);
hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, int attribute, void *value);
hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **ptr);
hsa_status_t hsa_amd_memory_pool_free(void *ptr);
hsa_status_t hsa_amd_agents_allow_access(uint32_t n, const hsa_agent_t *agents, const uint32_t *flags, const void *ptr);
hsa_status_t hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, size_t size,
                                       uint32_t n, const hsa_signal_t *waited, hsa_signal_t completion);
hsa_status_t hsa_amd_memory_fill(void *ptr, uint32_t value, size_t count);
hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type, void (*callback)(hsa_status_t, hsa_queue_t *, void *),
                              void *data, uint32_t private_size, uint32_t group_size, hsa_queue_t **queue);
hsa_status_t hsa_queue_destroy(hsa_queue_t *queue);
uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t *queue, uint64_t value);
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue);
hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t n, const hsa_agent_t *consumers, hsa_signal_t *signal);
hsa_status_t hsa_signal_destroy(hsa_signal_t signal);
hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal);
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_subtract_screlease(hsa_signal_t signal, hsa_signal_value_t value);
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, int condition, hsa_signal_value_t value, uint64_t timeout, int how);
uint32_t hsa_amd_signal_wait_any(uint32_t n, hsa_signal_t *signals, int *conditions, hsa_signal_value_t *values, uint64_t timeout,
                                 int how, hsa_signal_value_t *satisfying);
hsa_status_t hsa_code_object_reader_create_from_memory(const void *code, size_t size, hsa_code_object_reader_t *reader);
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader);
hsa_status_t hsa_executable_create_alt(int profile, int rounding, const char *options, hsa_executable_t *executable);
hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent, hsa_code_object_reader_t reader,
                                                   const char *options, hsa_loaded_code_object_t *loaded);
hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options);
hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *name, const hsa_agent_t *agent,
                                               hsa_executable_symbol_t *symbol);
hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol, int attribute, void *value);
hsa_status_t hsa_executable_destroy(hsa_executable_t executable);
