//! The part of Level Zero's `zes_api.h` that is used: functions, structures, numbers. Structures have the layouts of
//! version 1.8 of the specification, which later ones only append to by `pNext`.

use std::ffi::{c_char, c_void};

use libloading::Library;

use crate::load;

/// A handle of the driver.
pub(super) type Handle = *mut c_void;
/// A status; 0 is success.
pub(super) type Status = u32;
/// A query that lists handles: of what, how many, and where to.
pub(super) type Enumerate = unsafe extern "C" fn(Handle, *mut u32, *mut Handle) -> Status;

pub(super) const SUCCESS: Status = 0;
pub(super) const INSUFFICIENT_PERMISSIONS: Status = 0x7001_0000;
pub(super) const UNINITIALIZED: Status = 0x7800_0001;
pub(super) const UNSUPPORTED_VERSION: Status = 0x7800_0002;
pub(super) const UNSUPPORTED_FEATURE: Status = 0x7800_0003;
pub(super) const INVALID_ARGUMENT: Status = 0x7800_0004;

/// What a structure says that it is.
pub(super) mod stype {
    pub const DEVICE_PROPERTIES: u32 = 0x1;
    pub const PCI_PROPERTIES: u32 = 0x2;
    pub const ENGINE_PROPERTIES: u32 = 0x5;
    pub const FREQUENCY_PROPERTIES: u32 = 0x9;
    pub const TEMPERATURE_PROPERTIES: u32 = 0x14;
    pub const FREQUENCY_STATE: u32 = 0x1b;
    pub const MEMORY_STATE: u32 = 0x1e;
}

/// `ZES_FREQ_DOMAIN_…`.
pub(super) mod domain {
    pub const GPU: u32 = 0;
    pub const MEMORY: u32 = 1;
    pub const MEDIA: u32 = 2;
}

/// `ZES_ENGINE_GROUP_…`, the widest first.
pub(super) const ENGINES: [u32; 2] = [0, 1];
/// `ZES_TEMP_SENSORS_…`: of all sensors, else of the GPU's.
pub(super) const SENSORS: [u32; 2] = [0, 1];

load::functions! {
    /// The functions that are used.
    pub(super) struct Api {
        // Since version 1.5 of the specification: the first that older loaders lack.
        init: fn(u32) -> Status = "zesInit",
        driver_get: fn(*mut u32, *mut Handle) -> Status = "zesDriverGet",
        device_get: fn(Handle, *mut u32, *mut Handle) -> Status = "zesDeviceGet",
        device_properties: fn(Handle, *mut DeviceProperties) -> Status = "zesDeviceGetProperties",
        pci_properties: fn(Handle, *mut PciProperties) -> Status = "zesDevicePciGetProperties",
        pci_stats: fn(Handle, *mut PciStats) -> Status = "zesDevicePciGetStats",
        power_domains: fn(Handle, *mut u32, *mut Handle) -> Status = "zesDeviceEnumPowerDomains",
        energy: fn(Handle, *mut Energy) -> Status = "zesPowerGetEnergyCounter",
        power_limits: fn(Handle, *mut SustainedLimit, *mut c_void, *mut c_void) -> Status = "zesPowerGetLimits",
        frequency_domains: fn(Handle, *mut u32, *mut Handle) -> Status = "zesDeviceEnumFrequencyDomains",
        frequency_properties: fn(Handle, *mut FrequencyProperties) -> Status = "zesFrequencyGetProperties",
        frequency_state: fn(Handle, *mut FrequencyState) -> Status = "zesFrequencyGetState",
        engine_groups: fn(Handle, *mut u32, *mut Handle) -> Status = "zesDeviceEnumEngineGroups",
        engine_properties: fn(Handle, *mut EngineProperties) -> Status = "zesEngineGetProperties",
        engine_activity: fn(Handle, *mut EngineStats) -> Status = "zesEngineGetActivity",
        memory_modules: fn(Handle, *mut u32, *mut Handle) -> Status = "zesDeviceEnumMemoryModules",
        memory_state: fn(Handle, *mut MemoryState) -> Status = "zesMemoryGetState",
        memory_bandwidth: fn(Handle, *mut MemoryBandwidth) -> Status = "zesMemoryGetBandwidth",
        sensors: fn(Handle, *mut u32, *mut Handle) -> Status = "zesDeviceEnumTemperatureSensors",
        sensor_properties: fn(Handle, *mut TemperatureProperties) -> Status = "zesTemperatureGetProperties",
        temperature: fn(Handle, *mut f64) -> Status = "zesTemperatureGetState",
        ports: fn(Handle, *mut u32, *mut Handle) -> Status = "zesDeviceEnumFabricPorts",
        throughput: fn(Handle, *mut Throughput) -> Status = "zesFabricPortGetThroughput",
    }
    optional {}
}

/// `zes_device_properties_t`, with `ze_device_properties_t` in it.
#[repr(C)]
pub(super) struct DeviceProperties {
    pub stype: u32,
    pub next: *mut c_void,
    pub core: CoreProperties,
    pub subdevices: u32,
    pub serial: [c_char; 64],
    pub board: [c_char; 64],
    pub brand: [c_char; 64],
    pub model: [c_char; 64],
    pub vendor: [c_char; 64],
    pub driver: [c_char; 64],
}

/// `ze_device_properties_t`.
#[repr(C)]
pub(super) struct CoreProperties {
    pub stype: u32,
    pub next: *mut c_void,
    pub kind: u32,
    pub vendor: u32,
    pub device: u32,
    pub flags: u32,
    pub subdevice: u32,
    pub clock_rate: u32,
    pub max_allocation: u64,
    pub contexts: u32,
    pub priorities: u32,
    pub threads_per_eu: u32,
    pub simd_width: u32,
    pub eus_per_subslice: u32,
    pub subslices_per_slice: u32,
    pub slices: u32,
    pub timer_resolution: u64,
    pub timestamp_bits: u32,
    pub kernel_timestamp_bits: u32,
    pub uuid: [u8; 16],
    pub name: [c_char; 256],
}

/// `zes_pci_properties_t`.
#[repr(C)]
pub(super) struct PciProperties {
    pub stype: u32,
    pub next: *mut c_void,
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub function: u32,
    pub speed: PciSpeed,
    pub has_bandwidth: u8,
    pub has_packets: u8,
    pub has_replays: u8,
}

/// `zes_pci_speed_t`.
#[repr(C)]
pub(super) struct PciSpeed {
    pub generation: i32,
    pub width: i32,
    pub max_bandwidth: i64,
}

/// `zes_pci_stats_t`: bytes since the driver was loaded, at a time in microseconds.
#[repr(C)]
pub(super) struct PciStats {
    pub time: u64,
    pub replays: u64,
    pub packets: u64,
    pub received: u64,
    pub sent: u64,
    pub speed: PciSpeed,
}

/// `zes_power_energy_counter_t`: microjoules, at a time in microseconds.
#[repr(C)]
pub(super) struct Energy {
    pub energy: u64,
    pub time: u64,
}

/// `zes_power_sustained_limit_t`: milliwatts, milliseconds.
#[repr(C)]
pub(super) struct SustainedLimit {
    pub enabled: u8,
    pub power: i32,
    pub interval: i32,
}

/// `zes_freq_properties_t`.
#[repr(C)]
pub(super) struct FrequencyProperties {
    pub stype: u32,
    pub next: *mut c_void,
    pub domain: u32,
    pub on_subdevice: u8,
    pub subdevice: u32,
    pub can_control: u8,
    pub has_throttle_events: u8,
    pub min: f64,
    pub max: f64,
}

/// `zes_freq_state_t`: MHz; negative is not known.
#[repr(C)]
pub(super) struct FrequencyState {
    pub stype: u32,
    pub next: *const c_void,
    pub voltage: f64,
    pub request: f64,
    pub tdp: f64,
    pub efficient: f64,
    pub actual: f64,
    pub throttle_reasons: u32,
}

/// `zes_engine_properties_t`.
#[repr(C)]
pub(super) struct EngineProperties {
    pub stype: u32,
    pub next: *mut c_void,
    pub group: u32,
    pub on_subdevice: u8,
    pub subdevice: u32,
}

/// `zes_engine_stats_t`: microseconds in use, at a time in microseconds.
#[repr(C)]
pub(super) struct EngineStats {
    pub active: u64,
    pub time: u64,
}

/// `zes_mem_state_t`: bytes.
#[repr(C)]
pub(super) struct MemoryState {
    pub stype: u32,
    pub next: *const c_void,
    pub health: u32,
    pub free: u64,
    pub size: u64,
}

/// `zes_mem_bandwidth_t`: bytes since the driver was loaded, bytes per second at most, at a time in microseconds.
#[repr(C)]
pub(super) struct MemoryBandwidth {
    pub read: u64,
    pub written: u64,
    pub most: u64,
    pub time: u64,
}

/// `zes_temp_properties_t`.
#[repr(C)]
pub(super) struct TemperatureProperties {
    pub stype: u32,
    pub next: *mut c_void,
    pub kind: u32,
    pub on_subdevice: u8,
    pub subdevice: u32,
    pub max: f64,
    pub has_critical: u8,
    pub has_threshold1: u8,
    pub has_threshold2: u8,
}

/// `zes_fabric_port_throughput_t`: bytes, at a time in microseconds.
#[repr(C)]
pub(super) struct Throughput {
    pub time: u64,
    pub received: u64,
    pub sent: u64,
}
