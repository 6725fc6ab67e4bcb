//! What devices reported, in a row each.

use super::energy::readings;
use super::rows::{TelemetryRow, ThrottleRow};
use hetrace_trace::telemetry::{Monitored, Quantity, Sample, Telemetry};
use hetrace_trace::trace::{Device, Names};

/// A row for each device that reported anything; `used` are numbers of devices with commands.
pub(super) fn rows(telemetry: &Telemetry, names: &Names, used: &[u32]) -> Vec<TelemetryRow> {
    let used: Vec<&Device> = used.iter().filter_map(|id| names.device(*id)).collect();
    let devices = telemetry.devices().iter().filter(|d| !d.is_host() && !d.series.is_empty());
    devices.map(|d| row(d, &used)).collect()
}

fn row(device: &Monitored, used: &[&Device]) -> TelemetryRow {
    let power = device.samples(Quantity::Power);
    let (readings, source) = readings(device);
    let over = readings.first().zip(readings.last()).map_or(0, |(first, last)| last.to - first.from);
    let energy: f64 = readings.iter().map(|r| r.millijoules).sum();
    let known = !readings.is_empty();
    let utilization = device.samples(Quantity::Utilization);
    let memory = device.samples(Quantity::Memory);
    let most = |samples: &[Sample]| samples.iter().map(|s| s.values[0]).max();
    let large = |value: i64| u64::try_from(value).unwrap_or(0);
    TelemetryRow {
        index: device.index,
        name: device.name.clone(),
        uuid: device.uuid.clone(),
        used: used.iter().any(|d| device.is(d)),
        power_samples: power.len() as u64,
        mean_power_mw: if known && over > 0 { Some(energy * 1e9 / over as f64) } else { mean(power, 0) },
        max_power_mw: most(power).map(large),
        power_limit_mw: device.power_limit,
        energy_mj: known.then_some(energy),
        energy_source: known.then(|| source.to_owned()),
        energy_over_ns: over,
        mean_gpu_percent: mean(utilization, 0),
        mean_memory_percent: mean(utilization, 1),
        max_memory_used: most(memory).map(large),
        memory_bytes: memory.last().map_or(0, |s| large(s.values[3])),
        max_celsius: most(device.samples(Quantity::Temperature)),
        throttle: throttle(device),
    }
}

fn mean(samples: &[Sample], value: usize) -> Option<f64> {
    let sum: f64 = samples.iter().map(|s| s.values[value] as f64).sum();
    (!samples.is_empty()).then(|| sum / samples.len() as f64)
}

/// Reasons with the part of the time in which they held: from the sample that
/// says so to the next one, or to the last sample of the device.
fn throttle(device: &Monitored) -> Vec<ThrottleRow> {
    let samples = device.samples(Quantity::Throttle);
    let ends = device.series.iter().filter_map(|s| s.samples.last()).map(|s| s.time);
    let (Some(begin), Some(end)) = (samples.first().map(|s| s.time), ends.max()) else { return Vec::new() };
    let whole = end.saturating_sub(begin).max(1);
    let mut held: Vec<(&str, u64)> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let until = samples.get(index + 1).map_or(end, |next| next.time);
        let ns = until.saturating_sub(sample.time);
        let names = device.reasons.get(&sample.values[0]).map_or("", String::as_str);
        for name in names.split('|').filter(|name| !name.is_empty()) {
            match held.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => *all = all.saturating_add(ns),
                None => held.push((name, ns)),
            }
        }
    }
    held.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let row = |(reason, ns): (&str, u64)| ThrottleRow {
        reason: reason.to_owned(),
        percent: ns as f64 * 100.0 / whole as f64,
    };
    held.into_iter().map(row).collect()
}
