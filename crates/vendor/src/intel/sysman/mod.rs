//! Intel's GPUs, through Level Zero's sysman (`libze_loader.so.1`), which oneAPI and Intel's driver bring.
//!
//! What sysman counts (energy, use of engines, traffic) is turned into a power, a share or a rate from one query to the
//! next by the driver's own times of both. Reasons for lower clocks become those of `telemetry:throttle`.

mod api;
mod rate;

use std::ffi::{CStr, c_char};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use api::{Api, Enumerate, Handle, SUCCESS, Status, domain, stype};
use rate::Rates;

use super::known::{ID, INSTALL, LOADER};
use crate::load;
use crate::telemetry::{Device, Libraries, Missing, Opened, Quantity, Reading, Refusal, Source};

/// The name of this source.
const NAME: &str = "sysman";
/// What a device is asked for that has all.
const QUANTITIES: [Quantity; 9] = {
    use Quantity::{Clocks, Energy, Memory, Nvlink, Pcie, Power, Temperature, Throttle, Utilization};
    [Power, Energy, Clocks, Utilization, Memory, Temperature, Throttle, Nvlink, Pcie]
};

/// Opens sysman. None where the machine has no GPU of Intel's and no file is given.
pub(super) fn open(libraries: &Libraries, root: &Path) -> Option<Opened> {
    let given = libraries.get(NAME).map(PathBuf::as_path);
    if given.is_none() && !ID.has_gpu(root) {
        return None;
    }
    Some(Sysman::open(given).map(|source| Arc::new(source) as Arc<dyn Source>))
}

/// A handle that may be used by any thread, as sysman's functions may.
#[derive(Debug, Clone, Copy)]
struct Of(Handle);

// SAFETY: a handle is a number to the driver, whose functions are thread-safe for telemetry's: the specification lets them
// be called from any thread.
unsafe impl Send for Of {}
// SAFETY: nothing is read through it here, and the driver's functions may be called from several threads.
unsafe impl Sync for Of {}

/// The parts of a device that are asked.
#[derive(Debug)]
struct Parts {
    device: Of,
    power: Option<Of>,
    /// By domain of the frequency.
    frequencies: Vec<(u32, Of)>,
    engines: Option<Of>,
    memories: Vec<Of>,
    sensor: Option<Of>,
    ports: Vec<Of>,
}

/// Sysman and its devices.
struct Sysman {
    api: Api,
    driver: String,
    devices: Vec<Device>,
    parts: Vec<Parts>,
    missing: Vec<String>,
    rates: Rates,
}

impl fmt::Debug for Sysman {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sysman").field("driver", &self.driver).field("devices", &self.devices).finish()
    }
}

impl Sysman {
    /// Loads Level Zero's loader, from the given file or as the loader of programs finds it.
    fn open(given: Option<&Path>) -> Result<Self, Missing> {
        let missing = |why: String| Missing { name: NAME, why: format!("no GPU telemetry: {why}") };
        let library = load::first(given, &LOADER)
            .map_err(|error| missing(format!("sysman cannot be loaded ({error}); {INSTALL}")))?;
        let api = Api::of(library).map_err(|lacks| {
            missing(format!("this library is not Level Zero's loader, or too old (no {lacks}); {INSTALL}"))
        })?;
        // SAFETY: the library was just loaded; there are no flags.
        let status = unsafe { (api.init)(0) };
        if status != SUCCESS {
            return Err(missing(format!(
                "sysman does not start ({}); is Intel's driver installed, and may this user read /dev/dri (group \
                 render)?",
                text_of(status)
            )));
        }
        let mut source = Self {
            api,
            driver: String::new(),
            devices: Vec::new(),
            parts: Vec::new(),
            missing: Vec::new(),
            rates: Rates::default(),
        };
        source.describe_all();
        if source.devices.is_empty() {
            return Err(missing(
                "sysman finds no GPU here (does `clinfo` or `xpu-smi` list one?)".to_owned(),
            ));
        }
        Ok(source)
    }

    fn describe_all(&mut self) {
        let drivers = list(|count, to| {
            // SAFETY: `list` has room for as many handles as it says.
            unsafe { (self.api.driver_get)(count, to) }
        });
        let devices = drivers.iter().flat_map(|driver| self.all(self.api.device_get, driver.0));
        for (device, index) in devices.collect::<Vec<_>>().into_iter().zip(0..) {
            let parts = self.parts_of(device);
            let (described, driver) = self.describe(index, &parts);
            if self.driver.is_empty() {
                self.driver = driver;
            }
            if parts.memories.iter().all(|memory| self.memory_traffic(*memory).is_none()) {
                self.missing.push(format!(
                    "{NAME}: GPU {index} does not say what its memory moves: 0 % of use stands for it"
                ));
            }
            self.devices.push(described);
            self.parts.push(parts);
        }
    }

    fn parts_of(&self, device: Of) -> Parts {
        let api = &self.api;
        let frequencies = self.all(api.frequency_domains, device.0);
        let frequencies = frequencies.into_iter().filter_map(|of| Some((self.domain_of(of)?, of)));
        let engines = self.all(api.engine_groups, device.0);
        let engines = engines.into_iter().filter_map(|of| Some((self.group_of(of)?, of)));
        let sensors = self.all(api.sensors, device.0);
        let sensors = sensors.into_iter().filter_map(|of| Some((self.sensor_of(of)?, of)));
        Parts {
            device,
            // The first is the whole card's.
            power: self.all(api.power_domains, device.0).first().copied(),
            frequencies: frequencies.collect(),
            engines: widest(engines, api::ENGINES),
            memories: self.all(api.memory_modules, device.0),
            sensor: widest(sensors, api::SENSORS),
            ports: self.all(api.ports, device.0),
        }
    }

    /// The parts of something.
    fn all(&self, of: Enumerate, whose: Handle) -> Vec<Of> {
        list(|count, to| {
            // SAFETY: the handle is the driver's, and `list` has room for as many as it says.
            unsafe { of(whose, count, to) }
        })
    }

    /// The domain of a frequency of a whole device.
    fn domain_of(&self, frequency: Of) -> Option<u32> {
        let mut to = api::FrequencyProperties {
            stype: stype::FREQUENCY_PROPERTIES,
            next: null_mut(),
            domain: 0,
            on_subdevice: 0,
            subdevice: 0,
            can_control: 0,
            has_throttle_events: 0,
            min: 0.0,
            max: 0.0,
        };
        // SAFETY: the handle is the driver's; the structure says what it is, and nothing follows it.
        let status = unsafe { (self.api.frequency_properties)(frequency.0, &mut to) };
        (status == SUCCESS).then_some(to.domain)
    }

    fn group_of(&self, engines: Of) -> Option<u32> {
        let mut to = api::EngineProperties {
            stype: stype::ENGINE_PROPERTIES,
            next: null_mut(),
            group: 0,
            on_subdevice: 0,
            subdevice: 0,
        };
        // SAFETY: the handle is the driver's; the structure says what it is, and nothing follows it.
        let status = unsafe { (self.api.engine_properties)(engines.0, &mut to) };
        (status == SUCCESS).then_some(to.group)
    }

    fn sensor_of(&self, sensor: Of) -> Option<u32> {
        let mut to = api::TemperatureProperties {
            stype: stype::TEMPERATURE_PROPERTIES,
            next: null_mut(),
            kind: 0,
            on_subdevice: 0,
            subdevice: 0,
            max: 0.0,
            has_critical: 0,
            has_threshold1: 0,
            has_threshold2: 0,
        };
        // SAFETY: the handle is the driver's; the structure says what it is, and nothing follows it.
        let status = unsafe { (self.api.sensor_properties)(sensor.0, &mut to) };
        (status == SUCCESS).then_some(to.kind)
    }

    /// The device as the trace has it, and its driver's version.
    fn describe(&self, index: u32, parts: &Parts) -> (Device, String) {
        // SAFETY: numbers, texts and an address: zeros are valid, and an address of 0 says that nothing follows.
        let mut about: api::DeviceProperties = unsafe { std::mem::zeroed() };
        about.stype = stype::DEVICE_PROPERTIES;
        // SAFETY: the handle is the driver's; the structure says what it is.
        unsafe { (self.api.device_properties)(parts.device.0, &mut about) };
        // SAFETY: numbers and an address: zeros are valid.
        let mut bus: api::PciProperties = unsafe { std::mem::zeroed() };
        bus.stype = stype::PCI_PROPERTIES;
        // SAFETY: the handle is the driver's; the structure says what it is.
        let has_bus = unsafe { (self.api.pci_properties)(parts.device.0, &mut bus) } == SUCCESS;
        let uuid = about.core.uuid.iter().any(|byte| *byte != 0);
        let device = Device {
            index,
            uuid: if uuid { spelled(&about.core.uuid) } else { String::new() },
            name: text(&about.core.name).or_else(|| text(&about.model)).unwrap_or_default(),
            pci: match has_bus {
                true => format!("{:08x}:{:02x}:{:02x}.{:x}", bus.domain, bus.bus, bus.device, bus.function),
                false => String::new(),
            },
            power: "interval".to_owned(),
            power_limit: parts.power.map_or(0, |power| self.power_limit(power)),
        };
        (device, text(&about.driver).unwrap_or_default())
    }

    /// Milliwatts; 0 if not known.
    fn power_limit(&self, power: Of) -> u64 {
        let mut limit = api::SustainedLimit { enabled: 0, power: 0, interval: 0 };
        // SAFETY: the handle is the driver's; there is room for the sustained limit, and the others are not asked for.
        let status = unsafe { (self.api.power_limits)(power.0, &mut limit, null_mut(), null_mut()) };
        u64::try_from(limit.power).ok().filter(|_| status == SUCCESS && limit.enabled != 0).unwrap_or(0)
    }

    fn ask(&self, place: usize, quantity: Quantity) -> Result<Reading, Status> {
        let parts = self.parts.get(place).ok_or(api::INVALID_ARGUMENT)?;
        let per = |time, counts, of| self.rates.since_last((place, of), time, counts);
        Ok(match quantity {
            Quantity::Power => {
                let energy = self.energy(parts)?;
                match per(energy.time, [energy.energy, 0], quantity) {
                    // Microjoules in a second are microwatts.
                    Some(rate) => Reading::Power { milliwatts: rate.a_second(0) / 1000 },
                    None => Reading::Baseline,
                }
            }
            Quantity::Energy => Reading::Energy { millijoules: self.energy(parts)?.energy / 1000 },
            Quantity::Clocks => self.clocks(parts)?,
            Quantity::Utilization => return self.utilization(place, parts),
            Quantity::Memory => self.memory(parts)?,
            Quantity::Temperature => {
                let mut celsius = 0.0f64;
                let sensor = parts.sensor.ok_or(api::UNSUPPORTED_FEATURE)?;
                // SAFETY: the handle is the driver's, and there is room for a number.
                checked(unsafe { (self.api.temperature)(sensor.0, &mut celsius) })?;
                Reading::Temperature { celsius: celsius.round() as i32 }
            }
            Quantity::Throttle => {
                Reading::Throttle { reasons: reasons(self.frequency(parts, domain::GPU)?.throttle_reasons) }
            }
            Quantity::Nvlink => self.links(parts)?,
            Quantity::Pcie => {
                // SAFETY: numbers: zeros are valid.
                let mut stats: api::PciStats = unsafe { std::mem::zeroed() };
                // SAFETY: the handle is the driver's, and there is room for the structure.
                checked(unsafe { (self.api.pci_stats)(parts.device.0, &mut stats) })?;
                match per(stats.time, [stats.sent, stats.received], quantity) {
                    Some(rate) => Reading::Pcie { tx: rate.a_second(0), rx: rate.a_second(1) },
                    None => Reading::Baseline,
                }
            }
            _ => return Err(api::UNSUPPORTED_FEATURE),
        })
    }

    fn energy(&self, parts: &Parts) -> Result<api::Energy, Status> {
        let power = parts.power.ok_or(api::UNSUPPORTED_FEATURE)?;
        let mut energy = api::Energy { energy: 0, time: 0 };
        // SAFETY: the handle is the driver's, and there is room for the structure.
        checked(unsafe { (self.api.energy)(power.0, &mut energy) })?;
        Ok(energy)
    }

    fn frequency(&self, parts: &Parts, domain: u32) -> Result<api::FrequencyState, Status> {
        let of = parts.frequencies.iter().find(|(is, _)| *is == domain).ok_or(api::UNSUPPORTED_FEATURE)?;
        let mut state = api::FrequencyState {
            stype: stype::FREQUENCY_STATE,
            next: null(),
            voltage: 0.0,
            request: 0.0,
            tdp: 0.0,
            efficient: 0.0,
            actual: -1.0,
            throttle_reasons: 0,
        };
        // SAFETY: the handle is the driver's; the structure says what it is, and nothing follows it.
        checked(unsafe { (self.api.frequency_state)(of.1.0, &mut state) })?;
        Ok(state)
    }

    fn clocks(&self, parts: &Parts) -> Result<Reading, Status> {
        // Negative is not known, which is 0 in a trace.
        let mhz = |domain| self.frequency(parts, domain).map(|state| state.actual.max(0.0).round() as u32);
        Ok(Reading::Clocks {
            sm: mhz(domain::GPU)?,
            memory: mhz(domain::MEMORY).unwrap_or(0),
            graphics: 0,
            video: mhz(domain::MEDIA).unwrap_or(0),
        })
    }

    fn utilization(&self, place: usize, parts: &Parts) -> Result<Reading, Status> {
        let engines = parts.engines.ok_or(api::UNSUPPORTED_FEATURE)?;
        let mut stats = api::EngineStats { active: 0, time: 0 };
        // SAFETY: the handle is the driver's, and there is room for the structure.
        checked(unsafe { (self.api.engine_activity)(engines.0, &mut stats) })?;
        let key = (place, Quantity::Utilization);
        let gpu = self.rates.since_last(key, stats.time, [stats.active, 0]);
        // Memory has times of its own.
        let traffic: Vec<_> =
            parts.memories.iter().filter_map(|memory| self.memory_traffic(*memory)).collect();
        let moved = traffic.iter().map(|module| module.read.saturating_add(module.written)).sum();
        let most: u64 = traffic.iter().map(|module| module.most).sum();
        let time = traffic.first().map_or(0, |module| module.time);
        let memory = self.rates.since_last((place, Quantity::Memory), time, [moved, 0]);
        let memory = memory.map_or(0, |rate| (rate.a_second(0).saturating_mul(100) / most.max(1)).min(100));
        Ok(match gpu {
            // Microseconds in a second: ten thousand are a percent.
            Some(rate) => Reading::Utilization {
                gpu: (rate.a_second(0) / 10_000).min(100) as u32,
                memory: memory as u32,
            },
            None => Reading::Baseline,
        })
    }

    /// What a module of memory has moved; none if it does not say.
    fn memory_traffic(&self, memory: Of) -> Option<api::MemoryBandwidth> {
        let mut traffic = api::MemoryBandwidth { read: 0, written: 0, most: 0, time: 0 };
        // SAFETY: the handle is the driver's, and there is room for the structure.
        let status = unsafe { (self.api.memory_bandwidth)(memory.0, &mut traffic) };
        (status == SUCCESS && traffic.most > 0).then_some(traffic)
    }

    fn memory(&self, parts: &Parts) -> Result<Reading, Status> {
        if parts.memories.is_empty() {
            return Err(api::UNSUPPORTED_FEATURE);
        }
        let (mut free, mut total) = (0u64, 0u64);
        for memory in &parts.memories {
            let (health, nothing) = (0, null());
            let mut state =
                api::MemoryState { stype: stype::MEMORY_STATE, next: nothing, health, free: 0, size: 0 };
            // SAFETY: the handle is the driver's; the structure says what it is, and nothing follows it.
            checked(unsafe { (self.api.memory_state)(memory.0, &mut state) })?;
            (free, total) = (free.saturating_add(state.free), total.saturating_add(state.size));
        }
        Ok(Reading::Memory { used: total.saturating_sub(free), free, reserved: 0, total })
    }

    /// Bytes on all links to other devices.
    fn links(&self, parts: &Parts) -> Result<Reading, Status> {
        let (mut tx, mut rx) = (0u64, 0u64);
        let mut last = Err(api::UNSUPPORTED_FEATURE);
        for port in &parts.ports {
            let mut moved = api::Throughput { time: 0, received: 0, sent: 0 };
            // SAFETY: the handle is the driver's, and there is room for the structure.
            let asked = checked(unsafe { (self.api.throughput)(port.0, &mut moved) });
            if asked.is_ok() {
                (tx, rx) = (tx.saturating_add(moved.sent), rx.saturating_add(moved.received));
                last = Ok(());
            } else if last.is_err() {
                last = asked;
            }
        }
        last.map(|()| Reading::Nvlink { tx, rx })
    }
}

impl Source for Sysman {
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
        self.ask(device, quantity).map_err(|status| match status {
            api::INSUFFICIENT_PERMISSIONS
            | api::UNINITIALIZED
            | api::UNSUPPORTED_VERSION
            | api::UNSUPPORTED_FEATURE
            | api::INVALID_ARGUMENT => Refusal::Never(text_of(status)),
            _ => Refusal::NotNow(text_of(status)),
        })
    }
}

fn checked(status: Status) -> Result<(), Status> {
    if status == SUCCESS { Ok(()) } else { Err(status) }
}

/// The handles that a query lists: it is asked how many there are, and then for them. None if it fails.
fn list(query: impl Fn(*mut u32, *mut Handle) -> Status) -> Vec<Of> {
    /// More are not believed.
    const MOST: u32 = 4096;
    let mut count = 0;
    if query(&mut count, null_mut()) != SUCCESS {
        return Vec::new();
    }
    let room = count.min(MOST);
    let mut handles = vec![null_mut(); room as usize];
    let mut got = room;
    if room == 0 || query(&mut got, handles.as_mut_ptr()) != SUCCESS {
        return Vec::new();
    }
    handles.truncate(got.min(room) as usize);
    handles.into_iter().filter(|handle| !handle.is_null()).map(Of).collect()
}

/// The part of the first of `kinds` that there is.
fn widest(parts: impl Iterator<Item = (u32, Of)>, kinds: [u32; 2]) -> Option<Of> {
    let parts: Vec<_> = parts.collect();
    kinds.iter().find_map(|kind| parts.iter().find(|(is, _)| is == kind)).map(|(_, of)| *of)
}

/// A text that ends with its first 0; none if it is empty.
fn text(chars: &[c_char]) -> Option<String> {
    let bytes: Vec<u8> = chars.iter().map(|char| *char as u8).collect();
    let text = CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

/// As the API's calls have it.
fn spelled(uuid: &[u8; 16]) -> String {
    let mut text = String::from("GPU-");
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Bits of `ZES_FREQ_THROTTLE_REASON_FLAG_…` as bits of `telemetry:throttle`.
fn reasons(flags: u32) -> u64 {
    /// By bit: power on average, power in bursts, current, heat, power supply, software's range, hardware's range.
    const NAMES: [&str; 7] = [
        "SW_POWER_CAP",
        "SW_POWER_CAP",
        "HW_POWER_BRAKE_SLOWDOWN",
        "HW_THERMAL_SLOWDOWN",
        "HW_POWER_BRAKE_SLOWDOWN",
        "APPLICATIONS_CLOCKS_SETTING",
        "HW_SLOWDOWN",
    ];
    let bit = |name: &str| {
        let known = hetrace_format::telemetry::THROTTLE_REASONS.iter();
        known.clone().find(|(is, _)| *is == name).map_or(0, |(_, bit)| *bit)
    };
    let set = NAMES.iter().enumerate().filter(|(at, _)| flags >> at & 1 == 1);
    set.fold(0, |all, (_, name)| all | bit(name))
}

/// The name of a status.
fn text_of(status: Status) -> String {
    match status {
        0x7000_0001 => "ZE_RESULT_ERROR_DEVICE_LOST".to_owned(),
        api::INSUFFICIENT_PERMISSIONS => "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS".to_owned(),
        0x7001_0001 => "ZE_RESULT_ERROR_NOT_AVAILABLE".to_owned(),
        0x7002_0000 => "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE".to_owned(),
        api::UNINITIALIZED => "ZE_RESULT_ERROR_UNINITIALIZED".to_owned(),
        api::UNSUPPORTED_VERSION => "ZE_RESULT_ERROR_UNSUPPORTED_VERSION".to_owned(),
        api::UNSUPPORTED_FEATURE => "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE".to_owned(),
        api::INVALID_ARGUMENT => "ZE_RESULT_ERROR_INVALID_ARGUMENT".to_owned(),
        status => format!("status {status:#x}"),
    }
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
        for (file, says) in [("/nowhere/libze.so", "/nowhere/libze.so"), ("libc.so.6", "no zesInit")] {
            let libraries = Libraries::from([(NAME.to_owned(), PathBuf::from(file))]);
            let opened = open(&libraries, Path::new("/")).expect("it was asked for");
            let missing = opened.expect_err("it is not there");
            assert_eq!(missing.name, "sysman");
            assert!(missing.why.contains(says) && missing.why.contains("level-zero"), "{}", missing.why);
            assert_eq!(missing.why.lines().count(), 1);
        }
    }

    #[test]
    fn reasons_have_the_names_of_the_trace() {
        assert_eq!(reasons(0), 0);
        assert_eq!(reasons(0b11), 1 << 2, "both limits of power");
        assert_eq!(reasons(0b1000) | reasons(0b100_0000), 1 << 6 | 1 << 3);
        assert_eq!(reasons(1 << 30), 0, "unknown ones are no reason");
    }

    #[test]
    fn identities_are_spelled_as_calls_have_them() {
        let mut uuid = [0; 16];
        (uuid[0], uuid[15]) = (0x86, 0xff);
        assert_eq!(spelled(&uuid), "GPU-86000000-0000-0000-0000-0000000000ff");
    }

    #[test]
    fn lists_that_grow_or_fail_are_no_fault() {
        // It says two, and then that there are a thousand.
        let query = |count: *mut u32, to: *mut Handle| {
            // SAFETY: the test's own numbers, and room for two handles.
            unsafe {
                if to.is_null() {
                    *count = 2;
                } else {
                    *to = 8 as Handle;
                    *count = 1000;
                }
            }
            SUCCESS
        };
        assert_eq!(list(query).len(), 1, "the second is none");
        assert!(list(|_, _| api::UNINITIALIZED).is_empty());
    }
}
