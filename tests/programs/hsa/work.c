/* A program of HSA that counts its own calls and prints what they came to. It is linked to the fake library. */
#include "../hip/counted.h"
#include "hsa.h"

#include <errno.h>
#include <stdlib.h>

static void ok(hsa_status_t status, int line) {
    if (status) {
        printf("line %d: status %#x\n", line, status);
        exit(2);
    }
}
#define OK(function, ...) ok(CALL(function, __VA_ARGS__), __LINE__)

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t pool;

static hsa_status_t see_agent(hsa_agent_t agent, void *data) {
    char name[64];
    int kind = 0;
    (void)data;
    OK(hsa_agent_get_info, agent, AGENT_NAME, name);
    OK(hsa_agent_get_info, agent, AGENT_DEVICE, &kind);
    printf("agent %s, kind %d\n", name, kind);
    if (!kind) {
        cpu = agent;
        return 0;
    }
    gpu = agent;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t see_pool(hsa_amd_memory_pool_t found, void *data) {
    size_t size = 0;
    (void)data;
    OK(hsa_amd_memory_pool_get_info, found, POOL_SIZE, &size);
    printf("pool of %zu\n", size);
    pool = found;
    return 0;
}

static void system_and_agents(void) {
    uint16_t major = 0;
    hsa_dim3_t grid = {0};
    uint32_t units = 0, later = 0;
    OK(hsa_init);
    OK(hsa_system_get_info, SYSTEM_VERSION_MAJOR, &major);
    int broke = CALL(hsa_iterate_agents, see_agent, NULL);
    OK(hsa_agent_get_info, gpu, AGENT_GRID_MAX_DIM, &grid);
    OK(hsa_agent_get_info, gpu, AGENT_COMPUTE_UNITS, &units);
    OK(hsa_agent_get_info, gpu, AGENT_NEW, &later);
    OK(hsa_amd_agent_iterate_memory_pools, gpu, see_pool, NULL);
    printf("version %d, broke %d, grid %u %u %u, units %u, later %u\n", major, broke, grid.x, grid.y, grid.z, units, later);
}

static void code(void) {
    static const char text[] = "no code";
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    hsa_loaded_code_object_t loaded;
    hsa_executable_symbol_t symbol;
    uint64_t object = 0;
    int kind = 0;
    OK(hsa_code_object_reader_create_from_memory, text, sizeof text, &reader);
    OK(hsa_executable_create_alt, 1, 0, "", &executable);
    OK(hsa_executable_load_agent_code_object, executable, gpu, reader, NULL, &loaded);
    OK(hsa_executable_freeze, executable, NULL);
    OK(hsa_executable_get_symbol_by_name, executable, "add_one.kd", &gpu, &symbol);
    OK(hsa_executable_symbol_get_info, symbol, SYMBOL_KIND, &kind);
    OK(hsa_executable_symbol_get_info, symbol, SYMBOL_KERNEL_OBJECT, &object);
    printf("kernel %#lx of kind %d\n", object, kind);
    OK(hsa_executable_destroy, executable);
    OK(hsa_code_object_reader_destroy, reader);
}

static void memory_and_copies(int leave) {
    enum { BYTES = 4000 };
    void *memory, *back = calloc(1, BYTES);
    hsa_signal_t done, other;
    OK(hsa_amd_memory_pool_allocate, pool, BYTES, 4, &memory);
    OK(hsa_amd_agents_allow_access, 1, &gpu, NULL, memory);
    OK(hsa_amd_memory_fill, memory, 7, BYTES / 4);
    OK(hsa_signal_create, 1, 1, &cpu, &done);
    OK(hsa_signal_create, 1, 0, NULL, &other);
    OK(hsa_amd_memory_async_copy, back, cpu, memory, gpu, BYTES, 1, &other, done);
    long value = CALL(hsa_signal_wait_scacquire, done, CONDITION_LT, 1, UINT64_MAX, WAIT_BLOCKED);
    int conditions[2] = {CONDITION_EQ, CONDITION_LT};
    hsa_signal_t both[2] = {other, done};
    hsa_signal_value_t values[2] = {0, 1}, which = -1;
    unsigned first = CALL(hsa_amd_signal_wait_any, 2, both, conditions, values, 1000, WAIT_BLOCKED, &which);
    CALL(hsa_signal_subtract_screlease, other, 1);
    printf("copied %d, signal %ld, first %u at %ld\n", ((int *)back)[999], value, first, which);
    if (!leave) {
        OK(hsa_signal_destroy, other);
        OK(hsa_amd_memory_pool_free, memory);
    }
    OK(hsa_signal_destroy, done);
    free(back);
}

static void packets(void) {
    hsa_queue_t *queue;
    OK(hsa_queue_create, gpu, 64, 1, NULL, NULL, 0, 0, &queue);
    uint64_t at = CALL(hsa_queue_add_write_index_relaxed, queue, 2);
    CALL(hsa_signal_store_screlease, queue->doorbell_signal, (hsa_signal_value_t)at + 1);
    uint64_t read = CALL(hsa_queue_load_read_index_scacquire, queue);
    long rung = CALL(hsa_signal_load_relaxed, queue->doorbell_signal);
    printf("packets from %lu, read %lu, doorbell %ld\n", at, read, rung);
    OK(hsa_queue_destroy, queue);
}

/* Functions out of tables count as those that are exported. */
static void tables(void) {
    void *images[14], *loader[7] = {0};
    OK(hsa_system_get_extension_table, EXTENSION_IMAGES, 1, 0, images);
    OK(hsa_system_get_major_extension_table, EXTENSION_LOADER, 1, sizeof(void *), loader);
    hsa_status_t (*destroy)(hsa_agent_t, hsa_ext_image_t) = (hsa_status_t (*)(hsa_agent_t, hsa_ext_image_t))images[3];
    hsa_status_t (*query)(const void *, const void **) = (hsa_status_t (*)(const void *, const void **))loader[0];
    const void *host = NULL;
    count("hsa_ext_image_destroy");
    hsa_status_t first = destroy(gpu, (hsa_ext_image_t){99});
    count("hsa_ext_image_destroy");
    hsa_status_t second = destroy(gpu, (hsa_ext_image_t){1});
    count("hsa_ven_amd_loader_query_host_address");
    ok(query((const void *)0x5000, &host), __LINE__);
    printf("tables: %#x %#x, host %p, left out %d\n", first, second, host, loader[1] == NULL);
}

static void failures(void) {
    void *memory = NULL;
    hsa_queue_t *queue = NULL;
    errno = 42;
    int of_pool = CALL(hsa_amd_memory_pool_allocate, (hsa_amd_memory_pool_t){1}, 64, 0, &memory);
    int of_size = CALL(hsa_queue_create, gpu, 3, 0, NULL, NULL, 0, 0, &queue);
    int of_signal = CALL(hsa_signal_destroy, (hsa_signal_t){0});
    printf("failed %d %#x %#x, errno %d\n", of_pool, of_size, of_signal, errno);
}

int main(int argc, char **argv) {
    int leave = argc > 1 && strcmp(argv[1], "leave") == 0;
    system_and_agents();
    code();
    memory_and_copies(leave);
    packets();
    tables();
    failures();
    OK(hsa_shut_down);
    counted();
    return 3;
}
