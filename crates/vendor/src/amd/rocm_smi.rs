//! AMD's GPUs, through ROCm SMI (`librocm_smi64.so`), which ROCm brings.
//!
//! Units are the library's: microwatts, microjoules by a resolution, hertz, thousandths of a degree. Its query for the
//! traffic of the bus blocks for a second and counts packets, so that it is not made; of throttling and performance
//! states it has no numbers that compare to those of other vendors.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::Library;

use super::known::{ID, INSTALL, ROCM_SMI};
use crate::load;
use crate::telemetry::{Device, Libraries, Missing, Opened, Quantity, Reading, Refusal, Source};

/// The name of this source.
const NAME: &str = "rocm-smi";
/// What it is asked for.
const QUANTITIES: [Quantity; 6] = {
    use Quantity::{Clocks, Energy, Memory, Power, Temperature, Utilization};
    [Power, Energy, Clocks, Utilization, Memory, Temperature]
};
const SUCCESS: c_int = 0;
/// Clocks of the compute units, and of the memory.
const CLOCK_SYSTEM: c_int = 0;
const CLOCK_MEMORY: c_int = 4;
/// Sensors of temperature: the hottest place of the chip, and its edge, which all have.
const SENSORS: [u32; 2] = [1, 0];
const CURRENT: c_int = 0;
const VRAM: c_int = 0;
/// From this major version of the library on, a structure of clocks begins with a flag.
const FLAG_FIRST: u32 = 6;

/// Opens ROCm SMI. None where the machine has no GPU of AMD's and no file is given.
pub(super) fn open(libraries: &Libraries, root: &Path) -> Option<Opened> {
    let given = libraries.get(NAME).map(PathBuf::as_path);
    if given.is_none() && !ID.has_gpu(root) {
        return None;
    }
    Some(RocmSmi::open(given).map(|source| Arc::new(source) as Arc<dyn Source>))
}

load::functions! {
    /// The functions that are used. Each returns a status.
    struct Api {
        init: fn(u64) -> c_int = "rsmi_init",
        shut_down: fn() -> c_int = "rsmi_shut_down",
        status_string: fn(c_int, *mut *const c_char) -> c_int = "rsmi_status_string",
        version: fn(*mut Version) -> c_int = "rsmi_version_get",
        driver: fn(c_int, *mut c_char, u32) -> c_int = "rsmi_version_str_get",
        count: fn(*mut u32) -> c_int = "rsmi_num_monitor_devices",
        device_name: fn(u32, *mut c_char, usize) -> c_int = "rsmi_dev_name_get",
        unique_id: fn(u32, *mut u64) -> c_int = "rsmi_dev_unique_id_get",
        pci: fn(u32, *mut u64) -> c_int = "rsmi_dev_pci_id_get",
        power_cap: fn(u32, u32, *mut u64) -> c_int = "rsmi_dev_power_cap_get",
        power: fn(u32, u32, *mut u64) -> c_int = "rsmi_dev_power_ave_get",
        energy: fn(u32, *mut u64, *mut f32, *mut u64) -> c_int = "rsmi_dev_energy_count_get",
        clocks: fn(u32, c_int, *mut ClocksBuffer) -> c_int = "rsmi_dev_gpu_clk_freq_get",
        busy: fn(u32, *mut u32) -> c_int = "rsmi_dev_busy_percent_get",
        memory_busy: fn(u32, *mut u32) -> c_int = "rsmi_dev_memory_busy_percent_get",
        memory_total: fn(u32, c_int, *mut u64) -> c_int = "rsmi_dev_memory_total_get",
        memory_used: fn(u32, c_int, *mut u64) -> c_int = "rsmi_dev_memory_usage_get",
        temperature: fn(u32, u32, c_int, *mut i64) -> c_int = "rsmi_dev_temp_metric_get",
    }
    optional {
        /// Since ROCm 6, for devices that have no average.
        any_power: fn(u32, *mut u64, *mut c_int) -> c_int = "rsmi_dev_power_get",
    }
}

/// `rsmi_version_t`.
#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
    patch: u32,
    build: *const c_char,
}

/// Room for `rsmi_frequencies_t` of any version, as words: up to version 5 the numbers of frequencies and of the current
/// one, and 32 frequencies; since then a flag before them (padded to a number), and 33 frequencies.
#[repr(C, align(8))]
struct ClocksBuffer([u32; 128]);

impl ClocksBuffer {
    /// The current frequency in Hz.
    fn current(&self, major: u32) -> Option<u64> {
        let word = |at: usize| self.0.get(at).copied();
        let flag = usize::from(major >= FLAG_FIRST);
        let (supported, current) = (word(flag)?, word(flag + 1)?);
        if current >= supported {
            return None;
        }
        // Frequencies begin at the next multiple of 8 bytes.
        let first = (flag + 2).next_multiple_of(2);
        let at = first + 2 * usize::try_from(current).ok()?;
        Some(u64::from(word(at)?) | u64::from(word(at + 1)?) << 32)
    }
}

/// ROCm SMI and its devices.
struct RocmSmi {
    api: Api,
    /// Of the library.
    major: u32,
    driver: String,
    devices: Vec<Device>,
    missing: Vec<String>,
}

impl fmt::Debug for RocmSmi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocmSmi").field("driver", &self.driver).field("devices", &self.devices).finish()
    }
}

impl Drop for RocmSmi {
    fn drop(&mut self) {
        // SAFETY: the library is loaded, and was initialized by `open`, which made this value.
        unsafe { (self.api.shut_down)() };
    }
}

impl RocmSmi {
    /// Loads the library, from the given file or where it is installed.
    fn open(given: Option<&Path>) -> Result<Self, Missing> {
        let missing = |why: String| Missing { name: NAME, why: format!("no GPU telemetry: {why}") };
        let library = load::first(given, &ROCM_SMI)
            .map_err(|error| missing(format!("ROCm SMI cannot be loaded ({error}); {INSTALL}")))?;
        let api = Api::of(library).map_err(|lacks| {
            missing(format!("this library is not ROCm SMI or too old (no {lacks}); {INSTALL}"))
        })?;
        // SAFETY: the library was just loaded; 0 asks for AMD's GPUs only.
        let status = unsafe { (api.init)(0) };
        if status != SUCCESS {
            let why = text_of(&api, status);
            return Err(missing(format!(
                "ROCm SMI does not start ({why}); is the kernel's driver loaded (modprobe amdgpu), and may this user \
                 read /dev/kfd (group render)?"
            )));
        }
        let mut source =
            Self { api, major: 0, driver: String::new(), devices: Vec::new(), missing: Vec::new() };
        source.describe_all();
        if source.devices.is_empty() {
            return Err(missing("ROCm SMI finds no GPU here (does `rocm-smi` list one?)".to_owned()));
        }
        Ok(source)
    }

    fn describe_all(&mut self) {
        let mut version = Version { major: 0, minor: 0, patch: 0, build: std::ptr::null() };
        // SAFETY: there is room for a version; the text it points to is the library's and is not read.
        unsafe { (self.api.version)(&mut version) };
        self.major = version.major;
        // SAFETY: there are as many bytes as are said; 0 is the kernel's driver.
        self.driver = text(|to, length| unsafe { (self.api.driver)(0, to, length as u32) });
        let mut count = 0;
        // SAFETY: there is room for a number.
        unsafe { (self.api.count)(&mut count) };
        self.devices = (0..count).map(|index| self.describe(index)).collect();
        for device in &self.devices {
            // SAFETY: there is room for a number.
            if number(|to| unsafe { (self.api.memory_busy)(device.index, to) }).is_err() {
                self.missing.push(format!(
                    "{NAME}: GPU {} does not say how busy its memory is: 0 % stands for it",
                    device.index
                ));
            }
        }
    }

    fn describe(&self, index: u32) -> Device {
        let api = &self.api;
        // SAFETY: there is room for a number of 64 bits.
        let unique = number(|to: &mut u64| unsafe { (api.unique_id)(index, to) });
        // SAFETY: there is room for a number of 64 bits.
        let pci = number(|to: &mut u64| unsafe { (api.pci)(index, to) });
        // SAFETY: there is room for a number of 64 bits; 0 is the first sensor.
        let cap = number(|to: &mut u64| unsafe { (api.power_cap)(index, 0, to) });
        Device {
            index,
            uuid: unique.map(|id| format!("GPU-{id:016x}")).unwrap_or_default(),
            // SAFETY: there are as many bytes as are said.
            name: text(|to, length| unsafe { (api.device_name)(index, to, length) }),
            pci: pci.map(place_on_bus).unwrap_or_default(),
            power: "driver".to_owned(),
            power_limit: cap.map_or(0, |microwatts| microwatts / 1000),
        }
    }

    fn ask(&self, place: usize, quantity: Quantity) -> Result<Reading, c_int> {
        let index = self.devices.get(place).map(|device| device.index).ok_or(INVALID)?;
        let api = &self.api;
        Ok(match quantity {
            Quantity::Power => Reading::Power { milliwatts: self.power(index)? / 1000 },
            Quantity::Energy => {
                let (mut count, mut resolution, mut time) = (0u64, 0f32, 0u64);
                // SAFETY: there is room for the three numbers.
                checked(unsafe { (api.energy)(index, &mut count, &mut resolution, &mut time) })?;
                Reading::Energy { millijoules: (count as f64 * f64::from(resolution) / 1000.0) as u64 }
            }
            Quantity::Clocks => Reading::Clocks {
                sm: self.clock(index, CLOCK_SYSTEM)?,
                memory: self.clock(index, CLOCK_MEMORY).unwrap_or(0),
                graphics: 0,
                video: 0,
            },
            Quantity::Utilization => Reading::Utilization {
                // SAFETY: there is room for a number.
                gpu: number(|to| unsafe { (api.busy)(index, to) })?,
                // SAFETY: there is room for a number.
                memory: number(|to| unsafe { (api.memory_busy)(index, to) }).unwrap_or(0),
            },
            Quantity::Memory => {
                // SAFETY: there is room for a number.
                let total = number(|to: &mut u64| unsafe { (api.memory_total)(index, VRAM, to) })?;
                // SAFETY: there is room for a number.
                let used = number(|to: &mut u64| unsafe { (api.memory_used)(index, VRAM, to) })?;
                Reading::Memory { used, free: total.saturating_sub(used), reserved: 0, total }
            }
            Quantity::Temperature => Reading::Temperature { celsius: self.temperature(index)? },
            _ => return Err(NOT_SUPPORTED),
        })
    }

    /// Microwatts: the driver's average, or whatever the device has.
    fn power(&self, index: u32) -> Result<u64, c_int> {
        // SAFETY: there is room for a number; the first sensor.
        let average = number(|to: &mut u64| unsafe { (self.api.power)(index, 0, to) });
        match (average, self.api.any_power) {
            (Err(_), Some(any)) => {
                let mut kind = 0;
                // SAFETY: there is room for both numbers.
                number(|to: &mut u64| unsafe { any(index, to, &mut kind) })
            }
            (average, _) => average,
        }
    }

    /// MHz.
    fn clock(&self, index: u32, kind: c_int) -> Result<u32, c_int> {
        let mut clocks = ClocksBuffer([0; 128]);
        // SAFETY: there is more room than any version of the structure takes.
        checked(unsafe { (self.api.clocks)(index, kind, &mut clocks) })?;
        let hertz = clocks.current(self.major).ok_or(NO_DATA)?;
        Ok(u32::try_from(hertz / 1_000_000).unwrap_or(u32::MAX))
    }

    fn temperature(&self, index: u32) -> Result<i32, c_int> {
        let mut last = Err(NOT_SUPPORTED);
        for sensor in SENSORS {
            // SAFETY: there is room for a number.
            last = number(|to: &mut i64| unsafe { (self.api.temperature)(index, sensor, CURRENT, to) });
            if last.is_ok() {
                break;
            }
        }
        Ok(i32::try_from(last? / 1000).unwrap_or(i32::MAX))
    }
}

impl Source for RocmSmi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn driver(&self) -> &str {
        &self.driver
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn quantities(&self, _device: usize) -> &[Quantity] {
        &QUANTITIES
    }

    fn missing(&self) -> &[String] {
        &self.missing
    }

    fn read(&self, device: usize, quantity: Quantity) -> Result<Reading, Refusal> {
        self.ask(device, quantity).map_err(|status| {
            let why = text_of(&self.api, status);
            match status {
                INVALID | NOT_SUPPORTED | PERMISSION | NOT_YET | NOT_FOUND => Refusal::Never(why),
                _ => Refusal::NotNow(why),
            }
        })
    }
}

/// Statuses that do not change while a program runs.
const INVALID: c_int = 1;
const NOT_SUPPORTED: c_int = 2;
const PERMISSION: c_int = 4;
const NOT_YET: c_int = 9;
const NOT_FOUND: c_int = 10;
/// A value that makes no sense.
const NO_DATA: c_int = 14;

fn checked(status: c_int) -> Result<(), c_int> {
    if status == SUCCESS { Ok(()) } else { Err(status) }
}

/// What a query writes, if it succeeds.
fn number<T: Default>(query: impl FnOnce(&mut T) -> c_int) -> Result<T, c_int> {
    let mut value = T::default();
    checked(query(&mut value))?;
    Ok(value)
}

/// The text that a query writes; empty if it fails.
fn text(query: impl FnOnce(*mut c_char, usize) -> c_int) -> String {
    let mut bytes = [0u8; 256];
    // One byte stays 0 whatever is written.
    let status = query(bytes.as_mut_ptr().cast(), bytes.len() - 1);
    let text = CStr::from_bytes_until_nul(&bytes).ok().filter(|_| status == SUCCESS);
    text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// The library's words for a status.
fn text_of(api: &Api, status: c_int) -> String {
    let mut words: *const c_char = std::ptr::null();
    // SAFETY: there is room for an address.
    let known = unsafe { (api.status_string)(status, &mut words) } == SUCCESS && !words.is_null();
    if !known {
        return format!("status {status}");
    }
    // SAFETY: it is the address of a constant text of the library, which is loaded as long as `api` lives.
    let words = unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned();
    let name = words.split(':').next().unwrap_or_default().trim();
    format!("{name}, status {status}")
}

/// `domain:bus:device.function` of the library's number, whose bits 31 to 28 are a partition's.
fn place_on_bus(id: u64) -> String {
    let (domain, bus, device, function) = (id >> 32, (id >> 8) & 0xff, (id >> 3) & 0x1f, id & 7);
    format!("{domain:08x}:{bus:02x}:{device:02x}.{function}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_it_is_not_even_missing() {
        let root = tempfile::tempdir().unwrap();
        assert!(open(&Libraries::new(), root.path()).is_none());
    }

    #[test]
    fn a_library_that_is_not_there_or_not_it_is_named() {
        for (file, says) in
            [("/nowhere/librocm_smi64.so", "/nowhere/librocm_smi64.so"), ("libc.so.6", "not ROCm SMI")]
        {
            let libraries = Libraries::from([(NAME.to_owned(), PathBuf::from(file))]);
            let opened = open(&libraries, Path::new("/")).expect("it was asked for");
            let missing = opened.expect_err("it is not there");
            assert_eq!(missing.name, "rocm-smi");
            assert!(missing.why.contains(says) && missing.why.contains("librocm-smi64-1"), "{}", missing.why);
            assert_eq!(missing.why.lines().count(), 1);
        }
    }

    #[test]
    fn clocks_are_read_by_version() {
        let mut buffer = ClocksBuffer([0; 128]);
        buffer.0[..8].copy_from_slice(&[3, 1, 500_000_000, 0, 0x1000_0000, 1, 7, 7]);
        assert_eq!(buffer.current(5), Some(0x1_1000_0000));
        buffer.0[..10].copy_from_slice(&[1, 3, 2, 0, 1, 0, 2, 0, 900_000_000, 0]);
        assert_eq!(buffer.current(6), Some(900_000_000));
        buffer.0[..3].copy_from_slice(&[0, 2, 2]);
        assert_eq!(buffer.current(7), None, "there is no such clock");
    }

    #[test]
    fn places_on_the_bus_have_no_partition() {
        assert_eq!(place_on_bus(0x1_2000_c11b), "00000001:c1:03.3");
    }
}
