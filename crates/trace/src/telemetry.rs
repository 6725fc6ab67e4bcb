//! What devices told of themselves while the program ran.
//!
//! Telemetry is small beside calls and commands (a few numbers per device and
//! period), so it is read as a whole, before the walk: whoever shows a command
//! may need samples from before and after it.
//!
//! ```text
//! let telemetry = Telemetry::read(trace);
//! for device in telemetry.devices() {
//!     for series in &device.series {
//!         for sample in series.samples() { … series.quantity.fields() names sample.values … }
//!     }
//! }
//! ```

use std::collections::BTreeMap;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;

use crate::trace::{Device, Item, Trace};

/// What stands before the names of telemetry's events.
const PREFIX: &str = "telemetry:";
/// Most values of a sample.
const VALUES: usize = 4;

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Power, mW.
    Power,
    /// Energy since the driver was loaded, mJ: differences count.
    Energy,
    /// Clocks of `sm`, `memory`, `graphics`, `video`, MHz; 0 is not known.
    Clocks,
    /// Percent of the driver's last sample period in which the `gpu` ran, the `memory` was accessed.
    Utilization,
    /// Memory `used`, `free`, `reserved`, `total`, bytes.
    Memory,
    /// Temperature, °C.
    Temperature,
    /// 0 is the fastest, 15 the slowest, 32 not known; stands until the next sample.
    PerformanceState,
    /// Bits of reasons for lower clocks; stands until the next sample.
    Throttle,
    /// Traffic of all NVLinks, `tx` and `rx`, bytes per second.
    Nvlink,
    /// Traffic over PCIe, `tx` and `rx`, bytes per second.
    Pcie,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Power,
        Self::Energy,
        Self::Clocks,
        Self::Utilization,
        Self::Memory,
        Self::Temperature,
        Self::PerformanceState,
        Self::Throttle,
        Self::Nvlink,
        Self::Pcie,
    ];

    /// Its name in the trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Energy => "energy",
            Self::Clocks => "clocks",
            Self::Utilization => "utilization",
            Self::Memory => "memory",
            Self::Temperature => "temperature",
            Self::PerformanceState => "performance_state",
            Self::Throttle => "throttle",
            Self::Nvlink => "nvlink",
            Self::Pcie => "pcie",
        }
    }

    /// Names of its values in the trace, in the order of [`Sample::values`].
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Power => &["milliwatts"],
            Self::Energy => &["millijoules"],
            Self::Clocks => &["sm", "memory", "graphics", "video"],
            Self::Utilization => &["gpu", "memory"],
            Self::Memory => &["used", "free", "reserved", "total"],
            Self::Temperature => &["celsius"],
            Self::PerformanceState => &["state"],
            Self::Throttle => &["reasons"],
            Self::Nvlink | Self::Pcie => &["tx", "rx"],
        }
    }

    /// The unit of its values; empty where they have none.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Power => "mW",
            Self::Energy => "mJ",
            Self::Clocks => "MHz",
            Self::Utilization => "%",
            Self::Memory => "B",
            Self::Temperature => "°C",
            Self::PerformanceState | Self::Throttle => "",
            Self::Nvlink | Self::Pcie => "B/s",
        }
    }
}

/// One answer of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The middle of the query, nanoseconds on the trace's clock.
    pub time: u64,
    /// As [`Quantity::fields`] names them; the rest is 0.
    pub values: [i64; VALUES],
    /// How long the query lasted, or for NVLink what the rate is over, in
    /// nanoseconds; 0 if it was not told.
    pub took: u64,
}

/// All samples of one quantity of one device, in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// What they are of.
    pub quantity: Quantity,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// A device that told of itself. Texts are empty where nothing was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitored {
    /// Its number among telemetry's devices; other devices of the trace have numbers of their own.
    pub number: u32,
    /// The driver's number of it.
    pub index: u32,
    /// Who was asked (`nvml`).
    pub source: String,
    /// `GPU-…`: the same in every process.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// Its place on the bus: `domain:bus:device.function`.
    pub pci: String,
    /// Version of the driver.
    pub driver: String,
    /// Power readings are `instant`, or averages as the `driver` chooses.
    pub power: String,
    /// Names of the quantities that it tells.
    pub available: String,
    /// Its power limit, mW; 0 if it is not known.
    pub power_limit: u64,
    /// What it told; quantities without samples are not there.
    pub series: Vec<Series>,
    /// Names of values of [`Quantity::Throttle`], with `|` between.
    pub reasons: BTreeMap<i64, String>,
}

impl Monitored {
    /// The samples of a quantity, in the order of time; empty if there are none.
    pub fn samples(&self, quantity: Quantity) -> &[Sample] {
        let series = self.series.iter().find(|s| s.quantity == quantity);
        series.map_or(&[], |s| &s.samples)
    }

    /// Whether an API's device is this one.
    pub fn is(&self, device: &Device) -> bool {
        !device.uuid.is_empty() && bare(&device.uuid).eq_ignore_ascii_case(bare(&self.uuid))
    }

    fn add(&mut self, quantity: Quantity, sample: Sample) {
        match self.series.iter_mut().find(|s| s.quantity == quantity) {
            Some(series) => series.samples.push(sample),
            None => self.series.push(Series { quantity, samples: vec![sample] }),
        }
    }
}

/// An identity without what says of what kind it is.
fn bare(uuid: &str) -> &str {
    uuid.strip_prefix("GPU-").unwrap_or(uuid)
}

/// The telemetry of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    devices: Vec<Monitored>,
}

impl Telemetry {
    /// Reads the streams that begin with an event of telemetry. Damage is left
    /// to the walk, which comes to the same bytes.
    pub fn read(trace: &Trace) -> Self {
        let mut telemetry = Self::default();
        let told = trace.ctf().class().streams.iter();
        let mut told = told.flat_map(|s| &s.events).map(|e| e.name.as_str());
        if !told.any(|name| name.starts_with(PREFIX)) {
            return telemetry;
        }
        for stream in 0..trace.ctf().stream_count() {
            let mut cursor = trace.cursor_of(stream);
            while let Some(item) = cursor.next_item() {
                let Item::Event(occurrence) = item else { continue };
                let Some(name) = occurrence.event.class().name.strip_prefix(PREFIX) else { break };
                telemetry.event(name, occurrence.time, &occurrence.event);
            }
        }
        for device in &mut telemetry.devices {
            device.series.sort_by_key(|s| s.quantity);
            for series in &mut device.series {
                series.samples.sort_by_key(|s| s.time);
            }
        }
        telemetry.devices.sort_by_key(|d| d.index);
        telemetry
    }

    fn event(&mut self, name: &str, time: u64, event: &Event<'_, '_>) {
        let number = |name: &str| event.get(name).and_then(Scalar::as_u64);
        let Some(device) = number("device").and_then(|n| u32::try_from(n).ok()) else { return };
        let device = self.device(device);
        if name == "device" {
            let text = |name: &str| match event.get(name).and_then(Scalar::as_str) {
                // Some readers need a text to be there.
                None | Some("-") => String::new(),
                Some(text) => text.to_owned(),
            };
            device.index = number("index").and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            device.source = text("source");
            device.uuid = text("uuid");
            device.name = text("name");
            device.pci = text("pci");
            device.driver = text("driver");
            device.power = text("power");
            device.available = text("available");
            device.power_limit = number("power_limit").unwrap_or(0);
            return;
        }
        let Some(quantity) = Quantity::ALL.into_iter().find(|q| q.name() == name) else { return };
        let mut sample = Sample { time, ..Sample::default() };
        for (value, field) in sample.values.iter_mut().zip(quantity.fields()) {
            *value = event.get(field).and_then(integer).unwrap_or(0);
        }
        sample.took = number("took").or_else(|| number("interval")).unwrap_or(0);
        if quantity == Quantity::Throttle
            && let Some(names) = event.get("names").and_then(Scalar::as_str)
        {
            let names = if names == "-" { "" } else { names };
            device.reasons.entry(sample.values[0]).or_insert_with(|| names.to_owned());
        }
        device.add(quantity, sample);
    }

    /// The device of a number, which may have told nothing of itself before.
    fn device(&mut self, number: u32) -> &mut Monitored {
        let at = self.devices.iter().position(|d| d.number == number).unwrap_or_else(|| {
            self.devices.push(Monitored { number, ..Monitored::default() });
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }

    /// All devices, by the driver's number.
    pub fn devices(&self) -> &[Monitored] {
        &self.devices
    }

    /// Which of them an API's device is; several APIs may know one device.
    pub fn of(&self, device: &Device) -> Option<&Monitored> {
        self.devices.iter().find(|d| d.is(device))
    }
}

/// A number; what does not fit is as large as can be.
fn integer(value: Scalar<'_>) -> Option<i64> {
    match value {
        Scalar::Unsigned(v) => Some(i64::try_from(v).unwrap_or(i64::MAX)),
        Scalar::Enum { value, .. } => i64::try_from(value).ok(),
        other => other.as_i64(),
    }
}
