//! Records each device once: its identity, and what occupancy depends on.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::ring::abi::{DeviceRecord, PropertyRecord, special};

use super::record::send;
use super::{device_key, driver};

/// Devices that were recorded, as bits.
static RECORDED: AtomicU64 = AtomicU64::new(0);

/// Attributes by their number in `CUdevice_attribute`.
const PROPERTIES: &[(i32, &CStr)] = &[
    (75, c"compute_capability_major"),
    (76, c"compute_capability_minor"),
    (10, c"warp_size"),
    (1, c"max_threads_per_block"),
    (39, c"max_threads_per_multiprocessor"),
    (106, c"max_blocks_per_multiprocessor"),
    (82, c"registers_per_multiprocessor"),
    (12, c"registers_per_block"),
    (81, c"shared_memory_per_multiprocessor"),
    (8, c"shared_memory_per_block"),
    (97, c"max_shared_memory_per_block_optin"),
    (111, c"reserved_shared_memory_per_block"),
    (38, c"l2_cache_size"),
    (40, c"async_engine_count"),
    (31, c"concurrent_kernels"),
    (18, c"integrated"),
    (32, c"ecc_enabled"),
    (83, c"managed_memory"),
    (89, c"concurrent_managed_access"),
    (88, c"pageable_memory_access"),
    (41, c"unified_addressing"),
    (50, c"pci_domain"),
    (33, c"pci_bus"),
    (34, c"pci_device"),
];

const CLOCK_RATE: i32 = 13;
const MULTIPROCESSORS: i32 = 16;
const MEMORY_CLOCK_RATE: i32 = 36;
const BUS_WIDTH: i32 = 37;

/// How often recording devices has failed, and how often it may in all.
static FAILED: AtomicU32 = AtomicU32::new(0);
const MOST_FAILURES: u32 = 64;

/// Records a device, by its ordinal, unless it was recorded before. The driver may not answer, and a record may find no
/// room: then the next time, which is never far.
pub fn see(ordinal: u32) {
    let bit = 1u64.checked_shl(ordinal).unwrap_or(0);
    if bit != 0
        && RECORDED.load(Ordering::Relaxed) & bit == 0
        && RECORDED.fetch_or(bit, Ordering::Relaxed) & bit == 0
        && !record(ordinal)
        && FAILED.fetch_add(1, Ordering::Relaxed) < MOST_FAILURES
    {
        RECORDED.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// A new trace begins, in which none was recorded.
pub fn forget_recorded() {
    RECORDED.store(0, Ordering::Relaxed);
}

/// Returns whether it was recorded who the device is.
#[cold]
fn record(ordinal: u32) -> bool {
    let mut device = 0;
    // SAFETY: room for the answer.
    if unsafe { driver::cuDeviceGet(&mut device, ordinal as i32) } != 0 {
        return false;
    }
    let attribute = |number: i32| {
        let mut value = 0;
        // SAFETY: room for the answer.
        let error = unsafe { driver::cuDeviceGetAttribute(&mut value, number, device) };
        (error == 0).then_some(value.unsigned_abs())
    };
    let mut name: [c_char; 256] = [0; 256];
    let mut uuid = [0u8; 16];
    let mut memory = 0usize;
    // SAFETY: room for the answers; the last byte of the name stays 0.
    unsafe {
        driver::cuDeviceGetName(name.as_mut_ptr(), 255, device);
        if driver::cuDeviceGetUuid_v2(&mut uuid, device) != 0 {
            driver::cuDeviceGetUuid(&mut uuid, device);
        }
        driver::cuDeviceTotalMem_v2(&mut memory, device);
    }
    let key = device_key(ordinal);
    let record = DeviceRecord {
        device: key,
        ordinal,
        compute_units: attribute(MULTIPROCESSORS).unwrap_or(0),
        clock_khz: attribute(CLOCK_RATE).unwrap_or(0),
        memory_khz: attribute(MEMORY_CLOCK_RATE).unwrap_or(0),
        bus_bits: attribute(BUS_WIDTH).unwrap_or(0),
        reserved: 0,
        memory_bytes: memory as u64,
        uuid,
    };
    // SAFETY: it ends with a 0.
    if !send(special::DEVICE, &record, unsafe { super::record::text(name.as_ptr()) }) {
        return false;
    }
    for (number, name) in PROPERTIES {
        if let Some(value) = attribute(*number) {
            send(special::PROPERTY, &PropertyRecord { device: key, value: value.into() }, name);
        }
    }
    true
}
