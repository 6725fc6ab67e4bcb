//! Rows of what warps recorded inside of kernels.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hetrace_trace::demangle;
use hetrace_trace::inside::{Event, What};
use hetrace_trace::placed::{Launch, Placed};

use super::super::batch::Cell;
use super::super::tables::INSIDE;
use super::{Rows, Step, Stop, WATCHED, ns};

impl Rows<'_, '_> {
    /// Makes rows of all records of launches that are on the time line.
    pub(super) fn insides(&mut self) -> Step {
        let Ok(placed) = Placed::new(self.trace, Some(self.watch)) else { return ControlFlow::Break(Stop) };
        let mut names: HashMap<u32, String> = HashMap::new();
        let mut left = WATCHED;
        placed.each(|host, launch, event| {
            left -= 1;
            if left == 0 {
                left = WATCHED;
                (self.watch)(u64::from(WATCHED)).map_break(|()| Stop)?;
            }
            let name = names.entry(launch.kernel.number);
            let name = name.or_insert_with(|| demangle::full(&launch.kernel.name).into_owned());
            self.record(host, launch, event, name)
        })
    }

    fn record(&mut self, host: u64, launch: &Launch<'_>, event: &Event, name: &str) -> Step {
        let Some(ran) = &launch.ran else { return ControlFlow::Continue(()) };
        let record = if let What::At(record) = &event.what { Some(record) } else { None };
        let block = event.basic_block(launch.kernel);
        let text = block.and_then(|block| launch.kernel.blocks.get(block));
        let [x, y, z] = event.block;
        self.sheets.push(
            &INSIDE,
            &[
                launch.pid.into(),
                Cell::Text(&launch.kernel.name),
                Cell::Text(name),
                launch.records.grid.into(),
                self.clock.of(ran.start).into(),
                ran.queue.into(),
                ran.device.into(),
                self.clock.of(host).into(),
                ns(launch.slack_ns().unwrap_or(0)),
                event.clock.into(),
                x.into(),
                y.into(),
                z.into(),
                event.warp.into(),
                event.multiprocessor.into(),
                Cell::Text(event.what.name(launch.kernel)),
                record.map(|record| record.site).into(),
                block.map(|block| block as u64).into(),
                text.and_then(|text| text.file.as_deref()).into(),
                text.and_then(|text| text.line).into(),
                event.what.lanes().into(),
                record.map(|record| record.chosen).into(),
                record.map(|record| u32::from(record.case)).into(),
                record.map(|record| record.repeats).filter(|repeats| *repeats > 0).into(),
            ],
        )
    }
}
