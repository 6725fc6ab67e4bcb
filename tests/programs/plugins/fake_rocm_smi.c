/* A ROCm SMI of our own, built as librocm_smi64.so: just the functions that are asked for, and two devices. Values
 * go up with each query, so that a test knows them all.
 *
 * Device 0 reports everything. Device 1 is as newer ones: no average of its power but a momentary value, no energy, no
 * hottest place of the chip, and it does not say how busy its memory is.
 *
 * FAKE_ROCM_SMI_FAIL=N makes the initialization fail with that status; FAKE_ROCM_SMI_VERSION=N is its major version
 * (6), by which structures differ. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 1, NOT_SUPPORTED = 2, INIT_ERROR = 8, BUSY = 16 };
#define DEVICES 2

static struct {
    unsigned power, energy, clocks, memory;
} counts[DEVICES];

static unsigned next(unsigned *count) {
    return __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
}

static unsigned major(void) {
    const char *version = getenv("FAKE_ROCM_SMI_VERSION");
    return version ? (unsigned)atoi(version) : 6;
}

int rsmi_init(uint64_t flags) {
    const char *fail = getenv("FAKE_ROCM_SMI_FAIL");
    return flags != 0 ? INVALID : fail ? atoi(fail) : SUCCESS;
}

int rsmi_shut_down(void) {
    return SUCCESS;
}

int rsmi_status_string(int status, const char **text) {
    if (status == INIT_ERROR)
        *text = "RSMI_STATUS_INIT_ERROR: An error occurred during initialization";
    else if (status == NOT_SUPPORTED)
        *text = "RSMI_STATUS_NOT_SUPPORTED: This function is not supported";
    else
        return INVALID;
    return SUCCESS;
}

struct version {
    uint32_t major, minor, patch;
    const char *build;
};

int rsmi_version_get(struct version *version) {
    *version = (struct version){major(), 1, 2, "fake"};
    return SUCCESS;
}

int rsmi_version_str_get(int component, char *text, uint32_t length) {
    if (component != 0)
        return INVALID;
    snprintf(text, length, "6.8.5");
    return SUCCESS;
}

int rsmi_num_monitor_devices(uint32_t *count) {
    *count = DEVICES;
    return SUCCESS;
}

int rsmi_dev_name_get(uint32_t device, char *text, size_t length) {
    snprintf(text, length, "Fake Instinct %c", 'A' + (int)device);
    return device < DEVICES ? SUCCESS : INVALID;
}

int rsmi_dev_unique_id_get(uint32_t device, uint64_t *id) {
    *id = 0xabcdef0000000000u + device;
    return SUCCESS;
}

int rsmi_dev_pci_id_get(uint32_t device, uint64_t *id) {
    /* Domain 1, bus 0xc1, device 3, function 0; a partition's number stands above. */
    *id = (uint64_t)1 << 32 | (uint64_t)device << 28 | 0xc1u << 8 | 3u << 3;
    return SUCCESS;
}

int rsmi_dev_power_cap_get(uint32_t device, uint32_t sensor, uint64_t *microwatts) {
    *microwatts = 560000000u + device;
    return sensor == 0 ? SUCCESS : INVALID;
}

int rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t *microwatts) {
    if (device != 0 || sensor != 0)
        return NOT_SUPPORTED;
    *microwatts = 100000000u + 1000u * next(&counts[0].power);
    return SUCCESS;
}

int rsmi_dev_power_get(uint32_t device, uint64_t *microwatts, int *kind) {
    *microwatts = 50000000u + 1000u * next(&counts[device].power);
    *kind = 1;
    return SUCCESS;
}

int rsmi_dev_energy_count_get(uint32_t device, uint64_t *count, float *microjoules, uint64_t *time) {
    if (device != 0)
        return NOT_SUPPORTED;
    /* 2000 of half a millijoule for each query. */
    *count = 2000u * next(&counts[0].energy);
    *microjoules = 500;
    *time = 0;
    return SUCCESS;
}

struct clocks5 {
    uint32_t supported, current;
    uint64_t hertz[32];
};

struct clocks6 {
    _Bool deep_sleep;
    uint32_t supported, current;
    uint64_t hertz[33];
};

int rsmi_dev_gpu_clk_freq_get(uint32_t device, int kind, void *to) {
    if (kind != 0 && kind != 4)
        return NOT_SUPPORTED;
    uint64_t hertz = kind == 4 ? 1600000000u : 2000000000u + 1000000u * next(&counts[device].clocks);
    if (major() < 6)
        *(struct clocks5 *)to = (struct clocks5){3, 2, {1, 2, hertz}};
    else
        *(struct clocks6 *)to = (struct clocks6){1, 33, 32, {[32] = hertz}};
    return SUCCESS;
}

int rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent) {
    *percent = 90 + device;
    return SUCCESS;
}

int rsmi_dev_memory_busy_percent_get(uint32_t device, uint32_t *percent) {
    *percent = 40;
    return device == 0 ? SUCCESS : NOT_SUPPORTED;
}

int rsmi_dev_memory_total_get(uint32_t device, int kind, uint64_t *bytes) {
    *bytes = (uint64_t)(64 + device) << 30;
    return kind == 0 ? SUCCESS : NOT_SUPPORTED;
}

int rsmi_dev_memory_usage_get(uint32_t device, int kind, uint64_t *bytes) {
    unsigned query = next(&counts[device].memory);
    /* Device 1's cannot be had at first. */
    if (kind != 0 || (device == 1 && query == 1))
        return BUSY;
    *bytes = (uint64_t)query << 20;
    return SUCCESS;
}

int rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, int metric, int64_t *milli) {
    if (metric != 0 || (device == 1 && sensor != 0))
        return NOT_SUPPORTED;
    *milli = sensor == 1 ? 71999 : 40001;
    return SUCCESS;
}
