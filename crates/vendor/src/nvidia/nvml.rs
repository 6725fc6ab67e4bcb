//! NVIDIA's GPUs, through NVML (`libnvidia-ml.so.1`), which the driver brings.
//!
//! The crate `nvml-wrapper` loads the library when it is first needed. Two things
//! go around its safe functions, because it has none for them: counters summed
//! over all links (it leaves the scope of a field at 0, the first link), and
//! throttle reasons that are newer than its list (it drops them).

use std::mem;
use std::os::raw::c_ulonglong;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper::struct_wrappers::device::FieldValueSample;
use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_POWER_INSTANT,
};
use nvml_wrapper::{Device as NvmlDevice, Nvml};
use nvml_wrapper_sys::bindings::{nvmlFieldValue_t, nvmlReturn_t};

use crate::telemetry::{Device, Libraries, Missing, Opened, Quantity, Reading, Refusal, Source};

/// The name of this source.
const NAME: &str = "nvml";
/// The GPU itself, where a field can be asked of parts.
const WHOLE_DEVICE: u32 = 0;
/// The sum over all links.
const ALL_LINKS: u32 = u32::MAX;
/// NVML counts link traffic in KiB.
const KIB: u64 = 1024;
/// NVML gives bus traffic in KB/s.
const KB: u64 = 1000;

/// Opens NVML.
pub(super) fn open(libraries: &Libraries) -> Opened {
    let source = NvmlSource::open(libraries.get(NAME).map(PathBuf::as_path))?;
    Ok(Arc::new(source))
}

/// NVML and its devices.
#[derive(Debug)]
struct NvmlSource {
    nvml: Nvml,
    driver: String,
    devices: Vec<Device>,
}

impl NvmlSource {
    /// Loads NVML, from the given file or as the loader finds it. Fails when there is no
    /// NVML, no driver or no device, in words for the user.
    fn open(library: Option<&Path>) -> Result<Self, Missing> {
        let missing = |why: String| Missing { name: NAME, why };
        let mut builder = Nvml::builder();
        if let Some(library) = library {
            builder.lib_path(library.as_os_str());
        }
        let nvml = builder.init().map_err(|e| missing(why_not(&e)))?;
        let count = nvml.device_count().map_err(|e| missing(why_not(&e)))?;
        let mut source =
            NvmlSource { driver: nvml.sys_driver_version().unwrap_or_default(), nvml, devices: Vec::new() };
        // Devices that may not be looked at are passed over; the others keep their numbers.
        source.devices = (0..count).filter_map(|index| source.describe(index)).collect();
        if source.devices.is_empty() {
            let what = if count == 0 { "finds no GPU" } else { "lets this user look at no GPU" };
            return Err(missing(format!(
                "no GPU telemetry: NVML {what} here (does `nvidia-smi -L` list one?)"
            )));
        }
        Ok(source)
    }

    fn describe(&self, index: u32) -> Option<Device> {
        let device = self.nvml.device_by_index(index).ok()?;
        let instant = field(&device, NVML_FI_DEV_POWER_INSTANT, WHOLE_DEVICE).is_ok();
        Some(Device {
            index,
            uuid: device.uuid().unwrap_or_default(),
            name: device.name().unwrap_or_default(),
            pci: device.pci_info().map(|p| p.bus_id).unwrap_or_default(),
            power: if instant { INSTANT } else { "driver" }.to_owned(),
            power_limit: device.enforced_power_limit().map_or(0, u64::from),
        })
    }

    fn ask(&self, place: usize, quantity: Quantity) -> Result<Reading, NvmlError> {
        let known = self.devices.get(place).ok_or(NvmlError::InvalidArg)?;
        let device = self.nvml.device_by_index(known.index)?;
        Ok(match quantity {
            Quantity::Power if known.power == INSTANT => {
                Reading::Power { milliwatts: field(&device, NVML_FI_DEV_POWER_INSTANT, WHOLE_DEVICE)? }
            }
            Quantity::Power => Reading::Power { milliwatts: device.power_usage()?.into() },
            Quantity::Energy => Reading::Energy { millijoules: device.total_energy_consumption()? },
            Quantity::Clocks => Reading::Clocks {
                sm: device.clock_info(Clock::SM)?,
                memory: device.clock_info(Clock::Memory)?,
                // Not every device has these two.
                graphics: device.clock_info(Clock::Graphics).unwrap_or(0),
                video: device.clock_info(Clock::Video).unwrap_or(0),
            },
            Quantity::Utilization => {
                let rates = device.utilization_rates()?;
                Reading::Utilization { gpu: rates.gpu, memory: rates.memory }
            }
            Quantity::Memory => {
                let m = device.memory_info()?;
                Reading::Memory { used: m.used, free: m.free, reserved: m.reserved, total: m.total }
            }
            Quantity::Temperature => {
                let celsius = device.temperature(TemperatureSensor::Gpu)?;
                Reading::Temperature { celsius: i32::try_from(celsius).unwrap_or(i32::MAX) }
            }
            Quantity::PerformanceState => {
                Reading::PerformanceState { state: device.performance_state()?.as_c() }
            }
            Quantity::Throttle => Reading::Throttle { reasons: self.throttle_reasons(&device)? },
            Quantity::Nvlink => Reading::Nvlink {
                tx: field(&device, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS)?.saturating_mul(KIB),
                rx: field(&device, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS)?.saturating_mul(KIB),
            },
            Quantity::Pcie => Reading::Pcie {
                tx: u64::from(device.pcie_throughput(PcieUtilCounter::Send)?) * KB,
                rx: u64::from(device.pcie_throughput(PcieUtilCounter::Receive)?) * KB,
            },
            _ => return Err(NvmlError::NotSupported),
        })
    }

    /// Returns all bits, also those without a name in the crate.
    fn throttle_reasons(&self, device: &NvmlDevice<'_>) -> Result<u64, NvmlError> {
        let lib = self.nvml.lib();
        // Before driver 535 the function had another name.
        let names =
            [&lib.nvmlDeviceGetCurrentClocksEventReasons, &lib.nvmlDeviceGetCurrentClocksThrottleReasons];
        let found = names.into_iter().find_map(|f| f.as_ref().ok());
        let query = found.ok_or(NvmlError::FunctionNotFound)?;
        let mut reasons: c_ulonglong = 0;
        // SAFETY: the handle lives as long as `device`; the place is valid.
        nvml_try(unsafe { query(device.handle(), &mut reasons) })?;
        Ok(reasons)
    }
}

/// Power readings are of the moment.
const INSTANT: &str = "instant";

/// Returns the value of a field, of a part of the device.
fn field(device: &NvmlDevice<'_>, id: u32, scope: u32) -> Result<u64, NvmlError> {
    let query = device.nvml().lib().nvmlDeviceGetFieldValues.as_ref();
    let query = query.map_err(|_| NvmlError::FunctionNotFound)?;
    // SAFETY: integers and a union of numbers: zeros are valid.
    let mut value: nvmlFieldValue_t = unsafe { mem::zeroed() };
    value.fieldId = id;
    value.scopeId = scope;
    // SAFETY: the handle lives as long as `device`, and there is room for one value.
    let status: nvmlReturn_t = unsafe { query(device.handle(), 1, &mut value) };
    nvml_try(status)?;
    match FieldValueSample::try_from(value)?.value? {
        SampleValue::U32(value) => Ok(value.into()),
        SampleValue::U64(value) => Ok(value),
        SampleValue::I64(value) => u64::try_from(value).map_err(|_| NvmlError::NoData),
        SampleValue::F64(value) if value >= 0.0 => Ok(value as u64),
        SampleValue::F64(_) => Err(NvmlError::NoData),
    }
}

impl Source for NvmlSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn driver(&self) -> &str {
        &self.driver
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn read(&self, device: usize, quantity: Quantity) -> Result<Reading, Refusal> {
        self.ask(device, quantity).map_err(|error| refusal(&error))
    }
}

/// Returns what cannot change while a program runs is refused for good.
fn refusal(error: &NvmlError) -> Refusal {
    let why = error.to_string();
    match error {
        NvmlError::NotSupported
        | NvmlError::NoPermission
        | NvmlError::InvalidArg
        | NvmlError::FunctionNotFound
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::GpuLost => Refusal::Never(why),
        _ => Refusal::NotNow(why),
    }
}

/// Returns what is missing and how to fix it.
fn why_not(error: &NvmlError) -> String {
    let (what, fix) = match error {
        NvmlError::LibloadingError(error) => (
            format!("NVML cannot be loaded ({error})"),
            "install it with NVIDIA's driver: package libnvidia-ml1 or libnvidia-compute-…; \
             in a container the driver capability `utility`",
        ),
        NvmlError::DriverNotLoaded => (
            "NVIDIA's kernel driver is not loaded".to_owned(),
            "install or load it (modprobe nvidia), and check with `nvidia-smi`",
        ),
        NvmlError::LibRmVersionMismatch => (
            "NVML and the loaded kernel driver have different versions".to_owned(),
            "load the new driver, or restart the machine",
        ),
        NvmlError::NoPermission => {
            ("this user has no access to NVIDIA's driver".to_owned(), "check the permissions of /dev/nvidia*")
        }
        NvmlError::FailedToLoadSymbol(symbol) => {
            (format!("this library is not NVML or too old ({symbol})"), "install the one of the driver")
        }
        error => (format!("NVML error: {error}"), "check with `nvidia-smi`"),
    };
    format!("no GPU telemetry: {what}; {fix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let missing = NvmlSource::open(Some(Path::new("/nowhere/libnvidia-ml.so.1"))).expect_err("nothing");
        assert_eq!(missing.name, "nvml");
        for part in ["/nowhere/libnvidia-ml.so.1", "install it with NVIDIA's driver"] {
            assert!(missing.why.contains(part), "{}", missing.why);
        }
        assert_eq!(missing.why.lines().count(), 1);
    }

    #[test]
    fn a_library_that_is_not_nvml_is_no_fault() {
        let missing = NvmlSource::open(Some(Path::new("libc.so.6"))).expect_err("no NVML");
        assert!(missing.why.contains("not NVML or too old"), "{}", missing.why);
    }

    #[test]
    fn what_may_change_is_asked_again() {
        assert!(matches!(refusal(&NvmlError::NotSupported), Refusal::Never(_)));
        assert!(matches!(refusal(&NvmlError::NoData), Refusal::NotNow(_)));
        assert!(matches!(refusal(&NvmlError::Unknown), Refusal::NotNow(_)));
    }
}
