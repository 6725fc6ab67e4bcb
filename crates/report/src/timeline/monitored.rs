//! What devices and the host reported: counters, and why clocks were low.

use std::io;

use super::sheet::{Mark, Row, Sheet, Unit};
use super::tracks::{Kind, number};
use hetrace_trace::telemetry::{HOST, Monitored, Quantity, Sample, Series, Telemetry};
use hetrace_trace::trace::Trace;

/// All samples, and which of them are drawn.
#[derive(Debug)]
pub(super) struct Monitor {
    telemetry: Telemetry,
    /// Samples drawn, by device and series.
    drawn: Vec<Vec<usize>>,
}

impl Monitor {
    pub fn new(trace: &Trace) -> Self {
        let telemetry = Telemetry::read(trace);
        let drawn = telemetry.devices().iter().map(|d| vec![0; d.series.len()]).collect();
        Self { telemetry, drawn }
    }

    /// Draws what is before `time`. What stands until the trace ends is endless; see
    /// [`Sheet::end_endless`].
    pub fn draw_until(&mut self, sheet: &mut Sheet<'_>, time: u64) -> io::Result<()> {
        for (device, drawn) in self.telemetry.devices().iter().zip(&mut self.drawn) {
            let name = match (device.is_host(), device.label()) {
                // The host's processors have rows of threads, too.
                (true, name) if name != HOST => format!("{HOST}: {name}"),
                (_, name) => name,
            };
            let key = number(Kind::Monitored, [device.number.into(), 0, 0]);
            let group = sheet.row(Row { sorts: true, ..Row::new(key, None, &name) });
            let rows = Rows { device, group };
            for (series, drawn) in device.series.iter().zip(drawn) {
                let before = series.samples.partition_point(|s| s.time < time).max(*drawn);
                rows.series(sheet, series, *drawn..before)?;
                *drawn = before;
            }
        }
        Ok(())
    }
}

/// The rows of a device.
struct Rows<'m> {
    device: &'m Monitored,
    group: u64,
}

impl Rows<'_> {
    fn row(
        &self,
        sheet: &mut Sheet<'_>,
        (quantity, field): (Quantity, usize),
        name: &str,
        counter: Option<Unit>,
    ) -> u64 {
        let rank = quantity as u64 * 8 + field as u64;
        let key = number(Kind::Quantity, [self.device.number.into(), rank, 0]);
        sheet.row(Row { rank: Some(rank), counter, ..Row::new(key, Some(self.group), name) })
    }

    fn series(&self, sheet: &mut Sheet<'_>, series: &Series, new: std::ops::Range<usize>) -> io::Result<()> {
        let (quantity, all) = (series.quantity, series.samples.as_slice());
        match quantity {
            Quantity::Energy => return self.energy(sheet, all, new),
            Quantity::Throttle => return self.throttle(sheet, all, new),
            _ => {}
        }
        for (field, what) in quantity.fields().iter().enumerate() {
            let value = |sample: &Sample| sample.values.get(field).copied().unwrap_or(0) as f64;
            if quantity == Quantity::Clocks && all.iter().all(|s| value(s) == 0.0) {
                continue; // A clock that the device does not report.
            }
            let (name, unit, scale) = match quantity {
                Quantity::Power => ("power".to_owned(), Unit::Named("W"), 1e-3),
                Quantity::Clocks => (format!("{what} clock"), Unit::Named("MHz"), 1.0),
                Quantity::Utilization => (format!("{what} utilization"), Unit::Named("%"), 1.0),
                Quantity::Memory => (format!("memory {what}"), Unit::Bytes, 1.0),
                Quantity::Temperature => ("temperature".to_owned(), Unit::Named("°C"), 1.0),
                Quantity::Nvlink => (format!("NVLink {what}"), Unit::Named("B/s"), 1.0),
                Quantity::Pcie => (format!("PCIe {what}"), Unit::Named("B/s"), 1.0),
                Quantity::Cpu => (format!("CPU {what}"), Unit::Named("%"), 0.1),
                Quantity::Frequency => ("frequency".to_owned(), Unit::Named("MHz"), 1e-3),
                Quantity::HostMemory => (format!("memory {what}"), Unit::Bytes, 1.0),
                Quantity::Resident => ("resident memory of the program".to_owned(), Unit::Bytes, 1.0),
                Quantity::Pressure => (format!("waiting for {what}"), Unit::Named("%"), 0.1),
                Quantity::Disk | Quantity::Network => ((*what).to_owned(), Unit::Named("B/s"), 1.0),
                _ => (quantity.name().replace('_', " "), Unit::Count, 1.0),
            };
            let row = self.row(sheet, (quantity, field), &name, Some(unit));
            for sample in all.get(new.clone()).unwrap_or_default() {
                // A rate is over the time before the query, a counter's value stands
                // for the time after.
                let before = if quantity.is_rate() { sample.took } else { 0 };
                sheet.count(sample.time.saturating_sub(before), row, value(sample) * scale)?;
            }
        }
        Ok(())
    }

    /// Power as the energy that was used from one sample to the next.
    fn energy(&self, sheet: &mut Sheet<'_>, all: &[Sample], new: std::ops::Range<usize>) -> io::Result<()> {
        /// mJ per ns in W.
        const WATTS: f64 = 1e6;
        let row = self.row(sheet, (Quantity::Energy, 0), "power by energy", Some(Unit::Named("W")));
        let energy = |sample: &Sample| sample.values.first().copied().unwrap_or(0);
        for pair in new.filter_map(|at| all.get(at..at + 2)) {
            let [from, to] = pair else { continue };
            let (used, time) = (energy(to).saturating_sub(energy(from)), to.time.saturating_sub(from.time));
            // The driver begins anew when it is loaded anew.
            if used >= 0 && time > 0 {
                sheet.count(from.time, row, used as f64 / time as f64 * WATTS)?;
            }
        }
        Ok(())
    }

    /// Each set of reasons from when it was reported to the next.
    fn throttle(&self, sheet: &mut Sheet<'_>, all: &[Sample], new: std::ops::Range<usize>) -> io::Result<()> {
        let row = self.row(sheet, (Quantity::Throttle, 0), "reasons for lower clocks", None);
        for at in new {
            let Some(sample) = all.get(at) else { continue };
            let reasons = sample.values.first().copied().unwrap_or(0);
            if reasons == 0 {
                continue;
            }
            let named = self.device.reasons.get(&reasons).filter(|n| !n.is_empty());
            let name = named.map_or_else(|| format!("{reasons:#x}"), Clone::clone);
            let until = all.get(at + 1).map_or(u64::MAX, |next| next.time).max(sample.time);
            sheet.slice(Mark::begin(sample.time, row, "throttle", &name), until)?;
        }
        Ok(())
    }
}
