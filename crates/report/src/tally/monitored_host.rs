//! What the host reported, in a row for each value.

use super::energy::readings;
use super::rows::HostTelemetryRow;
use hetrace_trace::telemetry::{Monitored, Quantity, Sample, Series, Telemetry};

/// A row for each value of each part of the host.
pub(super) fn rows(telemetry: &Telemetry) -> Vec<HostTelemetryRow> {
    telemetry.devices().iter().filter(|device| device.is_host()).flat_map(device).collect()
}

fn device(device: &Monitored) -> Vec<HostTelemetryRow> {
    let mut rows = Vec::new();
    for series in &device.series {
        match series.quantity {
            Quantity::Energy => rows.extend(energy(device)),
            Quantity::Cpu => {
                rows.push(row(device, series, "busy", |s| s.values[0].saturating_add(s.values[1])));
                rows.extend(values(device, series));
            }
            _ => rows.extend(values(device, series)),
        }
    }
    rows
}

fn values(device: &Monitored, series: &Series) -> Vec<HostTelemetryRow> {
    let value = |(at, name): (usize, &&str)| {
        row(device, series, name, |sample| sample.values.get(at).copied().unwrap_or(0))
    };
    series.quantity.fields().iter().enumerate().map(value).collect()
}

/// Sums along samples.
fn row(device: &Monitored, series: &Series, value: &str, of: impl Fn(&Sample) -> i64) -> HostTelemetryRow {
    let is_rate = series.quantity.is_rate();
    let (mut weighted, mut weights) = (0.0, 0.0);
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for sample in &series.samples {
        let (value, weight) = (of(sample) as f64, if is_rate { sample.took as f64 } else { 1.0 });
        weighted += value * weight;
        weights += weight;
        min = min.min(value);
        max = max.max(value);
    }
    let counts = matches!(series.quantity, Quantity::Disk | Quantity::Network);
    HostTelemetryRow {
        device: device.name.clone(),
        quantity: series.quantity.name().to_owned(),
        value: value.to_owned(),
        unit: series.quantity.unit().to_owned(),
        samples: series.samples.len() as u64,
        mean: if weights > 0.0 { weighted / weights } else { 0.0 },
        min: if min.is_finite() { min } else { 0.0 },
        max: if max.is_finite() { max } else { 0.0 },
        total: counts.then_some(weighted / 1e9),
    }
}

/// Power from one reading of energy to the next.
fn energy(device: &Monitored) -> Option<HostTelemetryRow> {
    let (readings, _) = readings(device);
    let (first, last) = (readings.first()?, readings.last()?);
    let total: f64 = readings.iter().map(|reading| reading.millijoules).sum();
    let powers = readings.iter().map(|r| r.millijoules * 1e9 / (r.to - r.from).max(1) as f64);
    Some(HostTelemetryRow {
        device: device.name.clone(),
        quantity: Quantity::Energy.name().to_owned(),
        value: "milliwatts".to_owned(),
        unit: "mW".to_owned(),
        samples: readings.len() as u64,
        mean: total * 1e9 / (last.to - first.from).max(1) as f64,
        min: powers.clone().fold(f64::INFINITY, f64::min),
        max: powers.fold(0.0, f64::max),
        total: Some(total),
    })
}
