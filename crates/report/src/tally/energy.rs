//! What kernels and ranges took.
//!
//! A reading is an interval and the energy in it: the difference of two answers
//! of the device's counter, or the power between two samples. It says something
//! of a kernel only if nothing else ran meanwhile, and nobody knows what is
//! inside of it. So of kernels, energy is reported if [`LEAST`] readings are theirs
//! alone: their average power times the whole time. Of ranges it is reported if as many
//! lie inside: their sum, and a part of those at the ends. Of others nothing is reported.

use std::collections::HashMap;

use super::estimate::quantile;
use super::rows::EnergyRow;
use hetrace_trace::spans::{Command, CommandKind};
use hetrace_trace::telemetry::{Monitored, Quantity, Telemetry};
use hetrace_trace::trace::Names;

/// Readings that are needed.
pub(super) const LEAST: u64 = 10;
/// The part of a reading's interval in which a kernel must have run, and the most
/// of it in which others may.
const ALONE: f64 = 0.95;

/// An interval and what it took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// ns
    pub from: u64,
    /// ns
    pub to: u64,
    pub millijoules: f64,
}

impl Reading {
    fn ns(&self) -> u64 {
        self.to - self.from
    }

    /// mW
    fn power(&self) -> f64 {
        self.millijoules * 1e9 / self.ns().max(1) as f64
    }
}

/// The readings of a device, in the order of time; they do not overlap.
pub(super) fn readings(device: &Monitored) -> (Vec<Reading>, &'static str) {
    let counter = device.samples(Quantity::Energy);
    let mut readings = Vec::new();
    let mut last: Option<(u64, i64)> = None;
    for sample in counter {
        let value = sample.values[0];
        match last {
            // It counts in steps: nothing is known before the next.
            Some((_, before)) if before == value => {}
            Some((from, before)) if before < value && from < sample.time => {
                readings.push(Reading { from, to: sample.time, millijoules: value as f64 - before as f64 });
                last = Some((sample.time, value));
            }
            _ => last = Some((sample.time, value)),
        }
    }
    if !readings.is_empty() {
        return (readings, "counter");
    }
    let power = device.samples(Quantity::Power);
    let between = power.iter().zip(power.iter().skip(1)).filter(|(a, b)| a.time < b.time);
    let readings = between.map(|(a, b)| {
        let mean = (a.values[0] as f64 + b.values[0] as f64) / 2.0;
        Reading { from: a.time, to: b.time, millijoules: mean * (b.time - a.time) as f64 / 1e9 }
    });
    (readings.collect(), "power")
}

/// Readings of one device with their sums.
#[derive(Debug, Default)]
struct Meter {
    readings: Vec<Reading>,
    /// Up to each reading and with it, mJ.
    sums: Vec<f64>,
}

impl Meter {
    /// All readings before this one, mJ.
    fn before(&self, reading: usize) -> f64 {
        reading.checked_sub(1).and_then(|last| self.sums.get(last)).copied().unwrap_or(0.0)
    }
}

/// What all devices reported, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Meters {
    meters: Vec<Meter>,
    /// Which meter an API's device has, by its number.
    by_device: HashMap<u32, usize>,
}

impl Meters {
    pub fn new(telemetry: &Telemetry, names: &Names) -> Self {
        let meter = |device: &Monitored| {
            let (readings, source) = readings(device);
            // Power that the driver has averaged says nothing of so short a time.
            let blurred = source == "power" && device.power == "driver";
            let readings = if blurred { Vec::new() } else { readings };
            let mut sum = 0.0;
            let sums = readings.iter().map(|r| {
                sum += r.millijoules;
                sum
            });
            Meter { sums: sums.collect(), readings }
        };
        let meters: Vec<Meter> = telemetry.devices().iter().map(meter).collect();
        let by_device = names.devices().into_iter().filter_map(|device| {
            let at = telemetry.devices().iter().position(|d| d.is(device))?;
            (!meters[at].readings.is_empty()).then_some((device.id, at))
        });
        Self { by_device: by_device.collect(), meters }
    }
}

/// Powers of readings: how many, their sum and that of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Powers {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Powers {
    /// At this power for `ns`.
    fn energy(&self, ns: u64) -> Option<EnergyRow> {
        if self.count < LEAST {
            return None;
        }
        let n = self.count as f64;
        let variance = ((self.squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0);
        let seconds = ns as f64 / 1e9;
        Some(EnergyRow {
            millijoules: self.sum / n * seconds,
            error_mj: quantile(self.count - 1) * (variance / n).sqrt() * seconds,
            readings: self.count,
        })
    }
}

/// What a device took in ranges of a name.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Readings that lie inside.
    readings: u64,
    millijoules: f64,
    variance: f64,
    /// Time of which readings say something, ns.
    covered: u64,
}

/// What devices took in ranges of a name, by meter.
#[derive(Clone, Debug, Default)]
pub(super) struct RangeEnergy {
    taken: HashMap<usize, Taken>,
}

impl RangeEnergy {
    /// A range lasted from `begin` to `end`.
    pub fn add(&mut self, meters: &Meters, begin: u64, end: u64) {
        for (at, meter) in meters.meters.iter().enumerate() {
            let first = meter.readings.partition_point(|r| r.from < begin);
            let after = meter.readings.partition_point(|r| r.to <= end).max(first);
            let taken = self.taken.entry(at).or_default();
            taken.readings += (after - first) as u64;
            taken.millijoules += meter.before(after) - meter.before(first);
            if let (Some(one), Some(last)) = (meter.readings.get(first), after.checked_sub(1))
                && after > first
            {
                let to = meter.readings.get(last).map_or(one.to, |r| r.to);
                taken.covered = taken.covered.saturating_add(to.saturating_sub(one.from));
            }
            // Of a reading that is inside only in part, nobody knows which part took what.
            let edges = first.saturating_sub(1)..(after + 1).min(meter.readings.len());
            for index in edges.filter(|index| !(first..after).contains(index)) {
                let reading = meter.readings[index];
                let ns = end.min(reading.to).saturating_sub(begin.max(reading.from));
                let part = ns as f64 / reading.ns().max(1) as f64;
                taken.millijoules += reading.millijoules * part;
                // Evenly between nothing and all of it, if it is half.
                taken.variance += reading.millijoules.powi(2) * part * (1.0 - part) / 3.0;
                taken.covered = taken.covered.saturating_add(ns);
            }
        }
    }

    /// What these devices took in ranges that lasted `ns` in all.
    pub fn row(&self, meters: &Meters, devices: &[u32], ns: u64) -> Option<EnergyRow> {
        let mut used: Vec<usize> = devices.iter().filter_map(|d| meters.by_device.get(d).copied()).collect();
        used.sort_unstable();
        used.dedup();
        let mut all = Taken { readings: u64::MAX, ..Taken::default() };
        for at in &used {
            let taken = self.taken.get(at)?;
            if taken.readings < LEAST || (taken.covered as f64) < ALONE * ns as f64 {
                return None;
            }
            all.readings = all.readings.min(taken.readings);
            all.millijoules += taken.millijoules;
            all.variance += taken.variance;
        }
        let error_mj = 1.96 * all.variance.max(0.0).sqrt();
        (!used.is_empty()).then_some(EnergyRow {
            millijoules: all.millijoules,
            error_mj,
            readings: all.readings,
        })
    }
}

/// Who ran during readings.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelEnergy {
    /// By meter and reading: functions and their time, ns; 0 stands for what is no kernel.
    busy: HashMap<(usize, usize), Vec<(u32, u64)>>,
    /// Some commands were not looked at: nobody knows who ran.
    sampled: bool,
}

impl KernelEnergy {
    pub fn command(&mut self, meters: &Meters, command: &Command<'_>) {
        self.sampled |= command.weight > 1;
        if meters.by_device.is_empty() {
            return;
        }
        let meter = command.on_device.and_then(|d| meters.by_device.get(&d.id));
        let (Some(&at), Some(times)) = (meter, command.times) else { return };
        let Some(meter) = meters.meters.get(at).filter(|_| !self.sampled) else { return };
        let function = command.function.filter(|_| command.kind == CommandKind::Kernel).map_or(0, |f| f.id);
        let first = meter.readings.partition_point(|r| r.to <= times.start);
        let inside = meter.readings.iter().enumerate().skip(first).take_while(|(_, r)| r.from < times.end);
        for (reading, r) in inside {
            let ns = times.end.min(r.to).saturating_sub(times.start.max(r.from));
            let busy = self.busy.entry((at, reading)).or_default();
            match busy.iter_mut().find(|(f, _)| *f == function) {
                Some((_, all)) => *all = all.saturating_add(ns),
                None => busy.push((function, ns)),
            }
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.sampled |= other.sampled;
        for (key, busy) in &other.busy {
            let to = self.busy.entry(*key).or_default();
            for (function, ns) in busy {
                match to.iter_mut().find(|(f, _)| f == function) {
                    Some((_, all)) => *all = all.saturating_add(*ns),
                    None => to.push((*function, *ns)),
                }
            }
        }
    }

    /// By the kernel's name: what those with so much time took.
    pub fn rows<'n>(
        &self,
        meters: &Meters,
        names: &'n Names,
        time: &HashMap<&str, u64>,
    ) -> HashMap<&'n str, EnergyRow> {
        let mut powers: HashMap<&'n str, Powers> = HashMap::new();
        if self.sampled {
            return HashMap::new();
        }
        for ((meter, reading), busy) in &self.busy {
            let Some(reading) = meters.meters.get(*meter).and_then(|m| m.readings.get(*reading)) else {
                continue;
            };
            // Functions of one name are one kernel.
            let name = |function: u32| names.kernel(function).map_or("", |k| k.name.as_str());
            let Some(most) = busy.iter().max_by_key(|(_, ns)| *ns).map(|(f, _)| name(*f)) else { continue };
            let sum = |ns: &mut dyn Iterator<Item = u64>| ns.fold(0, u64::saturating_add);
            let own = sum(&mut busy.iter().filter(|(f, _)| name(*f) == most).map(|(_, ns)| *ns));
            let all = sum(&mut busy.iter().map(|(_, ns)| *ns));
            let whole = reading.ns() as f64;
            if most.is_empty()
                || (own as f64) < ALONE * whole
                || (all.saturating_sub(own)) as f64 > (1.0 - ALONE) * whole
            {
                continue;
            }
            let powers = powers.entry(most).or_default();
            powers.count += 1;
            powers.sum += reading.power();
            powers.squares += reading.power() * reading.power();
        }
        let row = |(name, powers): (&'n str, Powers)| Some((name, powers.energy(*time.get(name)?)?));
        powers.into_iter().filter_map(row).collect()
    }
}
