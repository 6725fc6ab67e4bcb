/* A Level Zero loader of our own with sysman alone, built as libze_loader.so.1: one device, whose counters go on by the
 * same each query, in a time of its own. Structures are those of Level Zero's header.
 *
 * FAKE_SYSMAN_FAIL=N makes zesInit fail with that status; FAKE_SYSMAN_BARE=1 makes a device that has no memory traffic,
 * no sensor, no links and no media engine. */
#include <level_zero/zes_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of later headers. */
#define MEDIA ((zes_freq_domain_t)2)
#define PART(n) ((void *)(uintptr_t)(0x1000 + (n)))
enum { DRIVER = 1, DEVICE, POWER, GPU_CLOCK, MEMORY_CLOCK, MEDIA_CLOCK, COMPUTE, ALL, HBM0, HBM1, GLOBAL, GPU_HEAT, PORT0, PORT1 };

static unsigned next(unsigned *count) {
    return __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
}

static int bare(void) {
    return getenv("FAKE_SYSMAN_BARE") != NULL;
}

ze_result_t zesInit(uint32_t flags) {
    const char *fail = getenv("FAKE_SYSMAN_FAIL");
    return flags != 0 ? ZE_RESULT_ERROR_INVALID_ARGUMENT : fail ? strtoul(fail, NULL, 0) : ZE_RESULT_SUCCESS;
}

static ze_result_t list(uint32_t *count, void *handles, const int *parts, uint32_t have) {
    if (*count == 0 || *count > have)
        *count = have;
    for (uint32_t i = 0; handles != NULL && i < *count; i++)
        ((void **)handles)[i] = PART(parts[i]);
    return ZE_RESULT_SUCCESS;
}

#define LIST(count, handles, ...) list(count, handles, (int[]){__VA_ARGS__}, sizeof(int[]){__VA_ARGS__} / sizeof(int))

ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *drivers) {
    return LIST(count, drivers, DRIVER);
}

ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *devices) {
    if ((void *)driver != PART(DRIVER))
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return LIST(count, devices, DEVICE);
}

ze_result_t zesDeviceGetProperties(zes_device_handle_t device, zes_device_properties_t *to) {
    (void)device;
    if (to->stype != ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES || to->pNext != NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    strcpy(to->core.name, "Fake Max");
    to->core.uuid.id[0] = 0x86;
    to->core.uuid.id[15] = 0x7f;
    strcpy(to->driverVersion, "1.6.32567");
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDevicePciGetProperties(zes_device_handle_t device, zes_pci_properties_t *to) {
    (void)device;
    if (to->stype != ZES_STRUCTURE_TYPE_PCI_PROPERTIES || to->pNext != NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    to->address = (zes_pci_address_t){2, 0x9a, 0x10, 1};
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDevicePciGetStats(zes_device_handle_t device, zes_pci_stats_t *to) {
    static unsigned queries;
    unsigned n = next(&queries);
    (void)device;
    /* 1 MB to the device and 2 MB from it in 4 ms. */
    to->timestamp = 4000u * n;
    to->rxCounter = 1000000u * n;
    to->txCounter = 2000000u * n;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumPowerDomains(zes_device_handle_t device, uint32_t *count, zes_pwr_handle_t *to) {
    (void)device;
    return LIST(count, to, POWER);
}

ze_result_t zesPowerGetEnergyCounter(zes_pwr_handle_t power, zes_power_energy_counter_t *to) {
    static unsigned queries;
    unsigned n = next(&queries);
    if ((void *)power != PART(POWER))
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    /* 2.5 J in 10 ms: 250 W. */
    to->energy = 2500000u * (uint64_t)n;
    to->timestamp = 10000u * n;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesPowerGetLimits(zes_pwr_handle_t power, zes_power_sustained_limit_t *to, zes_power_burst_limit_t *burst,
                              zes_power_peak_limit_t *peak) {
    (void)power;
    *to = (zes_power_sustained_limit_t){1, 600000, 28000};
    return burst == NULL && peak == NULL ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

ze_result_t zesDeviceEnumFrequencyDomains(zes_device_handle_t device, uint32_t *count, zes_freq_handle_t *to) {
    (void)device;
    return bare() ? LIST(count, to, GPU_CLOCK) : LIST(count, to, MEMORY_CLOCK, GPU_CLOCK, MEDIA_CLOCK);
}

ze_result_t zesFrequencyGetProperties(zes_freq_handle_t clock, zes_freq_properties_t *to) {
    if (to->stype != ZES_STRUCTURE_TYPE_FREQ_PROPERTIES || to->pNext != NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    to->type = (void *)clock == PART(GPU_CLOCK)      ? ZES_FREQ_DOMAIN_GPU
               : (void *)clock == PART(MEMORY_CLOCK) ? ZES_FREQ_DOMAIN_MEMORY
                                                     : MEDIA;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesFrequencyGetState(zes_freq_handle_t clock, zes_freq_state_t *to) {
    static unsigned queries;
    if (to->stype != ZES_STRUCTURE_TYPE_FREQ_STATE || to->pNext != NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    to->actual = (void *)clock == PART(GPU_CLOCK) ? 1600 : (void *)clock == PART(MEMORY_CLOCK) ? -1 : 900;
    to->throttleReasons = 0;
    /* Too hot from the third query on. */
    if ((void *)clock == PART(GPU_CLOCK) && next(&queries) > 4)
        to->throttleReasons = ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumEngineGroups(zes_device_handle_t device, uint32_t *count, zes_engine_handle_t *to) {
    (void)device;
    return LIST(count, to, COMPUTE, ALL);
}

ze_result_t zesEngineGetProperties(zes_engine_handle_t engine, zes_engine_properties_t *to) {
    if (to->stype != ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES || to->pNext != NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    to->type = (void *)engine == PART(ALL) ? ZES_ENGINE_GROUP_ALL : ZES_ENGINE_GROUP_COMPUTE_ALL;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesEngineGetActivity(zes_engine_handle_t engine, zes_engine_stats_t *to) {
    static unsigned queries;
    unsigned n = next(&queries);
    if ((void *)engine != PART(ALL))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    /* Three quarters of the time. */
    to->activeTime = 7500u * n;
    to->timestamp = 10000u * n;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumMemoryModules(zes_device_handle_t device, uint32_t *count, zes_mem_handle_t *to) {
    (void)device;
    return LIST(count, to, HBM0, HBM1);
}

ze_result_t zesMemoryGetState(zes_mem_handle_t memory, zes_mem_state_t *to) {
    (void)memory;
    if (to->stype != ZES_STRUCTURE_TYPE_MEM_STATE || to->pNext != NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    to->size = (uint64_t)64 << 30;
    to->free = (uint64_t)60 << 30;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesMemoryGetBandwidth(zes_mem_handle_t memory, zes_mem_bandwidth_t *to) {
    static unsigned queries[2];
    unsigned n = next(&queries[(void *)memory == PART(HBM1)]);
    if (bare())
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    /* 3 MB read and 1 MB written in 10 ms by each of two, of 1 GB a second at most: 40 %. */
    *to = (zes_mem_bandwidth_t){3000000u * (uint64_t)n, 1000000u * (uint64_t)n, 1000000000u, 10000u * n};
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumTemperatureSensors(zes_device_handle_t device, uint32_t *count, zes_temp_handle_t *to) {
    (void)device;
    if (bare())
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    return LIST(count, to, GPU_HEAT, GLOBAL);
}

ze_result_t zesTemperatureGetProperties(zes_temp_handle_t sensor, zes_temp_properties_t *to) {
    if (to->stype != ZES_STRUCTURE_TYPE_TEMP_PROPERTIES || to->pNext != NULL)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    to->type = (void *)sensor == PART(GLOBAL) ? ZES_TEMP_SENSORS_GLOBAL : ZES_TEMP_SENSORS_GPU;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesTemperatureGetState(zes_temp_handle_t sensor, double *celsius) {
    *celsius = (void *)sensor == PART(GLOBAL) ? 66.6 : 50;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumFabricPorts(zes_device_handle_t device, uint32_t *count, zes_fabric_port_handle_t *to) {
    (void)device;
    if (bare()) {
        *count = 0;
        return ZE_RESULT_SUCCESS;
    }
    return LIST(count, to, PORT0, PORT1);
}

ze_result_t zesFabricPortGetThroughput(zes_fabric_port_handle_t port, zes_fabric_port_throughput_t *to) {
    static unsigned queries[2];
    unsigned n = next(&queries[(void *)port == PART(PORT1)]);
    *to = (zes_fabric_port_throughput_t){10000u * n, 1048576u * (uint64_t)n, 2097152u * (uint64_t)n};
    return ZE_RESULT_SUCCESS;
}
