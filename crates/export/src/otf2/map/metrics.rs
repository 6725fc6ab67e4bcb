//! Telemetry of devices, as metrics: a class for each quantity, an instance for
//! each device that has it, and a location for each device that records them.

use std::collections::BTreeMap;

use hetrace_trace::telemetry::{Quantity, Telemetry};

use super::super::definitions::{Definitions, LocationKind, Mode, Number};
use super::super::events;
use super::counters::Counters;
use super::output::Output;
use super::places::Places;
use crate::Error;

/// How values of a quantity are meant.
fn mode(quantity: Quantity) -> Mode {
    match quantity {
        Quantity::Energy => Mode::Accumulated,
        Quantity::Utilization
        | Quantity::Nvlink
        | Quantity::Pcie
        | Quantity::Cpu
        | Quantity::Disk
        | Quantity::Network => Mode::Last,
        Quantity::PerformanceState | Quantity::Throttle => Mode::Next,
        Quantity::Power
        | Quantity::Clocks
        | Quantity::Memory
        | Quantity::Temperature
        | Quantity::Frequency
        | Quantity::HostMemory
        | Quantity::Pressure
        | Quantity::Resident => Mode::Point,
    }
}

/// Writes all samples and what programs counted, and says how many values there are.
pub(in crate::otf2) fn write(
    out: &mut Output,
    places: &mut Places<'_>,
    telemetry: &Telemetry,
    counters: Counters,
) -> Result<u64, Error> {
    let sampled = |quantity: Quantity| {
        telemetry.devices().iter().any(|d| d.series.iter().any(|s| s.quantity == quantity))
    };
    let definitions = &mut out.archive.definitions;
    let classes: BTreeMap<Quantity, u32> = Quantity::ALL
        .into_iter()
        .filter(|quantity| sampled(*quantity))
        .map(|quantity| (quantity, class(definitions, quantity)))
        .collect();
    let counted = counters.classes(definitions);
    let mut samples = counters.write(out, places, &counted)?;
    for device in telemetry.devices().iter().filter(|d| !d.series.is_empty()) {
        let group = places.monitored(&mut out.archive.definitions, device);
        let who = if device.is_host() { device.label() } else { format!("GPU {}", device.index) };
        let name = format!("{who}: telemetry");
        let location = out.archive.location(&name, LocationKind::Metric, group);
        let mut events = Vec::new();
        for series in &device.series {
            let Some(class) = classes.get(&series.quantity) else { continue };
            let instance = out.archive.definitions.metric_instance(*class, location, group);
            let values = series.quantity.fields().len();
            events.extend(series.samples.iter().map(|sample| (sample.time, instance, sample, values)));
        }
        events.sort_by_key(|(time, instance, ..)| (*time, *instance));
        for (time, instance, sample, values) in events {
            let values = sample.values.get(..values).unwrap_or_default();
            out.event(location, time, |bytes| events::metric(bytes, instance, values))?;
            samples += 1;
        }
    }
    Ok(samples)
}

fn class(definitions: &mut Definitions, quantity: Quantity) -> u32 {
    let fields = quantity.fields();
    let members = fields.iter().map(|field| {
        let name = match fields {
            [_] => quantity.name().to_owned(),
            _ => format!("{}: {field}", quantity.name()),
        };
        definitions.metric_member(&name, field, mode(quantity), Number::Signed, quantity.unit())
    });
    let members: Vec<u32> = members.collect();
    definitions.metric_class(&members)
}
