//! What devices and the host reported while the program ran.
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
use std::mem::take;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_format::telemetry::{self, PREFIX};
pub use hetrace_format::telemetry::{HOST, Quantity, Sample};

use crate::trace::{Device, Item, Trace};

/// All samples of one quantity of one device, in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// What they are of.
    pub quantity: Quantity,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// A device that reported of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitored {
    /// Its number among telemetry's devices; other devices of the trace have numbers of their own.
    pub number: u32,
    /// The driver's number of it.
    pub index: u32,
    /// Who was asked (`nvml`, `host`).
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
    /// Names of the quantities that it reports.
    pub available: String,
    /// Its power limit, mW; 0 if it is not known.
    pub power_limit: u64,
    /// What it reported; quantities without samples are not there.
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

    /// Whether this is the host, or a part of it.
    pub fn is_host(&self) -> bool {
        self.source == telemetry::HOST
    }

    /// What people call it: `GPU 0 Toy GPU`, `disk sda`.
    pub fn label(&self) -> String {
        telemetry::Monitored::label(&self.source, self.index, &self.name)
    }

    /// Whether an API's device is this one.
    pub fn is(&self, device: &Device) -> bool {
        let same = |uuid: &str| uuid.eq_ignore_ascii_case(bare(&self.uuid));
        !device.uuid.is_empty()
            && (same(bare(&device.uuid)) || spelled(&device.uuid).is_some_and(|text| same(&text)))
    }

    fn describe(&mut self, device: telemetry::Monitored) {
        let telemetry::Monitored {
            device: _,
            index,
            source,
            uuid,
            name,
            pci,
            driver,
            power,
            available,
            power_limit,
        } = device;
        let (number, series, reasons) = (self.number, take(&mut self.series), take(&mut self.reasons));
        *self = Self {
            number,
            index,
            source,
            uuid,
            name,
            pci,
            driver,
            power,
            available,
            power_limit,
            series,
            reasons,
        };
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

/// What the 16 bytes of an identity spell, if they are hexadecimal digits: HIP gives the number of AMD's devices so.
fn spelled(uuid: &str) -> Option<String> {
    let digits: Vec<u8> = uuid.bytes().filter(|byte| *byte != b'-').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    let is_text = bytes.len() == 16 && bytes.iter().all(u8::is_ascii_hexdigit);
    String::from_utf8(bytes).ok().filter(|_| is_text)
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
        let events = trace.ctf().class().streams.iter();
        let mut names = events.flat_map(|s| &s.events).map(|e| e.name.as_str());
        if !names.any(|name| name.starts_with(PREFIX)) {
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
        telemetry.devices.sort_by_key(|d| (d.is_host(), d.index));
        telemetry
    }

    fn event(&mut self, name: &str, time: u64, event: &Event<'_, '_>) {
        let number = |name: &str| event.get(name).and_then(Scalar::as_u64);
        let Some(device) = number("device").and_then(|n| u32::try_from(n).ok()) else { return };
        let device = self.device(device);
        if event.class().name == telemetry::Monitored::EVENT {
            device.describe(telemetry::Monitored::decode(|name| event.get(name)));
            return;
        }
        let Some(quantity) = Quantity::of_name(name) else { return };
        let mut sample = Sample { time, ..Sample::default() };
        for (value, field) in sample.values.iter_mut().zip(quantity.fields()) {
            *value = event.get(field).and_then(integer).unwrap_or(0);
        }
        sample.took = quantity.span().and_then(number).unwrap_or(0);
        if quantity == Quantity::Throttle
            && let Some(names) = event.get("names").and_then(hetrace_format::text)
        {
            device.reasons.entry(sample.values[0]).or_insert_with(|| names.to_owned());
        }
        device.add(quantity, sample);
    }

    /// The device of a number, which may have reported nothing before.
    fn device(&mut self, number: u32) -> &mut Monitored {
        let at = self.devices.iter().position(|d| d.number == number).unwrap_or_else(|| {
            self.devices.push(Monitored { number, ..Monitored::default() });
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }

    /// All devices, by the driver's number; the host's behind all others.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_identity_however_an_api_spells_it() {
        let sampled = |uuid: &str| Monitored { uuid: uuid.to_owned(), ..Monitored::default() };
        let device = |uuid: &str| Device { uuid: uuid.to_owned(), ..Device::default() };
        let same = "86000000-0000-0000-0000-00000000007f";
        assert!(sampled(&format!("GPU-{same}")).is(&device(&same.to_uppercase())));
        // HIP: the digits themselves.
        let digits = "61626364-6566-3030-3030-303030303031";
        assert!(sampled("GPU-abcdef0000000001").is(&device(digits)));
        assert!(!sampled("GPU-abcdef0000000002").is(&device(digits)));
        assert!(!sampled("").is(&device("")) && !sampled("GPU-abcdef0000000001").is(&device("x")));
    }
}
