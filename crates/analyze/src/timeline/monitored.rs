//! What devices told of themselves: counters, and why their clocks were low.

use std::io;

use super::sheet::{Mark, Row, Sheet, Unit};
use super::tracks::{Kind, number};
use crate::telemetry::{Monitored, Quantity, Sample, Telemetry};
use crate::trace::Trace;

/// Draws all samples; `end` is when the last slice ends.
pub(super) fn draw(sheet: &mut Sheet<'_>, trace: &Trace, end: u64) -> io::Result<()> {
    for device in Telemetry::read(trace).devices() {
        let rows = Rows { device, group: number(Kind::Monitored, [device.number.into(), 0, 0]) };
        let space = if device.name.is_empty() { "" } else { " " };
        let name = format!("GPU {}{space}{}", device.index, device.name);
        sheet.row(Row { sorts: true, ..Row::new(rows.group, None, &name) })?;
        for series in &device.series {
            rows.series(sheet, series.quantity, &series.samples, end)?;
        }
    }
    Ok(())
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
    ) -> io::Result<u64> {
        let rank = quantity as u64 * 8 + field as u64;
        let row = number(Kind::Quantity, [self.device.number.into(), rank, 0]);
        sheet.row(Row { rank: Some(rank), counter, ..Row::new(row, Some(self.group), name) })?;
        Ok(row)
    }

    fn series(
        &self,
        sheet: &mut Sheet<'_>,
        quantity: Quantity,
        samples: &[Sample],
        end: u64,
    ) -> io::Result<()> {
        match quantity {
            Quantity::Energy => return self.energy(sheet, samples),
            Quantity::Throttle => return self.throttle(sheet, samples, end),
            _ => {}
        }
        for (field, what) in quantity.fields().iter().enumerate() {
            let value = |sample: &Sample| sample.values.get(field).copied().unwrap_or(0) as f64;
            if quantity == Quantity::Clocks && samples.iter().all(|s| value(s) == 0.0) {
                continue; // A clock that the device does not tell.
            }
            let (name, unit, scale) = match quantity {
                Quantity::Power => ("power".to_owned(), Unit::Named("W"), 1e-3),
                Quantity::Clocks => (format!("{what} clock"), Unit::Named("MHz"), 1.0),
                Quantity::Utilization => (format!("{what} utilization"), Unit::Named("%"), 1.0),
                Quantity::Memory => (format!("memory {what}"), Unit::Bytes, 1.0),
                Quantity::Temperature => ("temperature".to_owned(), Unit::Named("°C"), 1.0),
                Quantity::Nvlink => (format!("NVLink {what}"), Unit::Named("B/s"), 1.0),
                Quantity::Pcie => (format!("PCIe {what}"), Unit::Named("B/s"), 1.0),
                _ => (quantity.name().replace('_', " "), Unit::Count, 1.0),
            };
            let row = self.row(sheet, (quantity, field), &name, Some(unit))?;
            for sample in samples {
                // A rate of links is over the time before the query, a counter's value stands
                // for the time after.
                let before = if quantity == Quantity::Nvlink { sample.took } else { 0 };
                sheet.count(sample.time.saturating_sub(before), row, value(sample) * scale)?;
            }
        }
        Ok(())
    }

    /// Power as the energy that was used from one sample to the next.
    fn energy(&self, sheet: &mut Sheet<'_>, samples: &[Sample]) -> io::Result<()> {
        /// mJ per ns in W.
        const WATTS: f64 = 1e6;
        let row = self.row(sheet, (Quantity::Energy, 0), "power by energy", Some(Unit::Named("W")))?;
        let energy = |sample: &Sample| sample.values.first().copied().unwrap_or(0);
        for pair in samples.windows(2) {
            let [from, to] = pair else { continue };
            let (used, time) = (energy(to).saturating_sub(energy(from)), to.time.saturating_sub(from.time));
            // The driver begins anew when it is loaded anew.
            if used >= 0 && time > 0 {
                sheet.count(from.time, row, used as f64 / time as f64 * WATTS)?;
            }
        }
        Ok(())
    }

    /// Each set of reasons from when it was told to the next.
    fn throttle(&self, sheet: &mut Sheet<'_>, samples: &[Sample], end: u64) -> io::Result<()> {
        let row = self.row(sheet, (Quantity::Throttle, 0), "reasons for lower clocks", None)?;
        for (at, sample) in samples.iter().enumerate() {
            let reasons = sample.values.first().copied().unwrap_or(0);
            if reasons == 0 {
                continue;
            }
            let named = self.device.reasons.get(&reasons).filter(|n| !n.is_empty());
            let name = named.map_or_else(|| format!("{reasons:#x}"), Clone::clone);
            let until = samples.get(at + 1).map_or(end, |next| next.time).max(sample.time);
            sheet.mark(Mark::begin(sample.time, row, "throttle", &name))?;
            sheet.mark(Mark::end(until, row))?;
        }
        Ok(())
    }
}
