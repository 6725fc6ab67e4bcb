/* An NVML of our own, built as libnvidia-ml.so.1: just the functions that are asked
 * for, and two devices. Values go up with each query, so that a test knows them all.
 *
 * Device 0 reports everything; each direction of its bus traffic takes 20 ms, as with
 * the real library. Device 1 has no energy counter, no links and no power reading
 * but the driver's; its memory cannot be had at the first query.
 *
 * FAKE_NVML_FAIL=N makes the initialization fail with that status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, UNKNOWN = 999 };
enum { FIELD_LINK_TX = 138, FIELD_LINK_RX = 139, FIELD_POWER_INSTANT = 186 };
enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3 };
#define ALL_LINKS 0xffffffffu
#define DEVICES 2

struct device {
    unsigned index;
    /* Queries of each kind, from several threads. */
    unsigned power, energy, clocks, memory, throttle, links;
};

static struct device devices[DEVICES] = {{.index = 0}, {.index = 1}};

static unsigned next(unsigned *count) {
    return __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
}

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct utilization {
    unsigned gpu, memory;
};

struct field_value {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, status;
    union {
        double d;
        unsigned u;
        unsigned long long ull;
    } value;
};

int nvmlInit_v2(void) {
    const char *fail = getenv("FAKE_NVML_FAIL");
    return fail ? atoi(fail) : SUCCESS;
}

int nvmlShutdown(void) {
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    snprintf(version, length, "580.95.05");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = DEVICES;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device) {
    if (index >= DEVICES) return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-00000000-0000-0000-0000-00000000000%u", device->index);
    return SUCCESS;
}

int nvmlDeviceGetName(struct device *device, char *name, unsigned length) {
    snprintf(name, length, "Fake GPU %c", 'A' + (int)device->index);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci_info *info) {
    memset(info, 0, sizeof *info);
    info->bus = 0x1b + device->index;
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", info->bus);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(struct device *device, unsigned *milliwatts) {
    if (device->index == 1) return NOT_SUPPORTED;
    *milliwatts = 700000;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(struct device *device, unsigned *milliwatts) {
    *milliwatts = 50000 + next(&device->power);
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(struct device *device, unsigned long long *millijoules) {
    if (device->index == 1) return NOT_SUPPORTED;
    *millijoules = 1000ull * next(&device->energy);
    return SUCCESS;
}

/* Kinds of clocks: graphics, multiprocessors, memory, video. */
int nvmlDeviceGetClockInfo(struct device *device, int kind, unsigned *mhz) {
    if (kind == 3 && device->index == 1) return NOT_SUPPORTED;
    *mhz = 1000 * (unsigned)(kind + 1) + (kind == 1 ? next(&device->clocks) : 0);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *rates) {
    rates->gpu = 90 + device->index;
    rates->memory = 30;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory *memory) {
    unsigned long long n = next(&device->memory);
    if (memory->version != (sizeof *memory | 2u << 24)) return INVALID_ARGUMENT;
    if (device->index == 1 && n == 1) return UNKNOWN;
    memory->total = 80ull << 30;
    memory->reserved = 1ull << 30;
    memory->used = n << 20;
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius) {
    if (sensor != 0) return INVALID_ARGUMENT;
    *celsius = 40 + device->index;
    return SUCCESS;
}

int nvmlDeviceGetPerformanceState(struct device *device, int *state) {
    *state = device->index == 0 ? 0 : 8;
    return SUCCESS;
}

/* Idle at first, then throttled by power, then by power and heat and something that
 * has no name yet. */
int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *reasons) {
    unsigned n = next(&device->throttle);
    *reasons = n <= 2 ? 0x1 : n <= 5 ? 0x4 : 0x4 | 0x20 | 0x8000;
    return SUCCESS;
}

/* In KB/s, over 20 ms. */
int nvmlDeviceGetPcieThroughput(struct device *device, int direction, unsigned *kilobytes) {
    if (device->index == 0) usleep(20000);
    *kilobytes = direction == 0 ? 2000 : 3000;
    return SUCCESS;
}

int nvmlDeviceGetFieldValues(struct device *device, int count, struct field_value *values) {
    for (int i = 0; i < count; i++) {
        struct field_value *v = &values[i];
        v->status = NOT_SUPPORTED;
        if (device->index == 1) continue;
        switch (v->field) {
        case FIELD_POWER_INSTANT:
            v->type = UNSIGNED_INT;
            v->value.u = 100000 + next(&device->power);
            v->status = SUCCESS;
            break;
        case FIELD_LINK_TX:
        case FIELD_LINK_RX:
            if (v->scope != ALL_LINKS) break;
            v->type = UNSIGNED_LONG_LONG;
            /* 1 MiB for each query of the one direction, in KiB; twice that of the other. */
            v->value.ull = 1024ull * (v->field == FIELD_LINK_TX ? next(&device->links) : 2 * device->links);
            v->status = SUCCESS;
            break;
        }
    }
    return SUCCESS;
}
