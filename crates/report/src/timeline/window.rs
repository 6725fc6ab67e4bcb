//! Where files begin and end: the window that is drawn, and its parts.

use std::io;
use std::ops::ControlFlow;

use super::part::Part;
use super::run::{Drawer, Step, Stop, step};
use hetrace_trace::spans::Summary;

impl Drawer<'_, '_> {
    /// Something is due: the first event, an end of the window, a full file, or a question.
    #[cold]
    pub fn turn(&mut self, time: u64) -> Step {
        if self.left == 0 {
            self.left = super::run::WATCHED;
            if (self.watch)(self.left.into()).is_break() {
                return ControlFlow::Break(Stop::Asked);
            }
        }
        let first = *self.first.get_or_insert(time);
        let from = first.saturating_add(self.options.from.unwrap_or(0));
        let to = self.options.to.map_or(u64::MAX, |to| first.saturating_add(to));
        let begun = self.sheet.is_active();
        self.turn_at = if begun || time >= from { to } else { from };
        if time >= to {
            // The walk ends before anything of the window has come.
            if !begun && from < to {
                step(self.begin_file(from))?;
            }
            return ControlFlow::Break(Stop::WindowEnds);
        }
        if !begun {
            return if time >= from { step(self.begin_file(from)) } else { Step::Continue(()) };
        }
        let (bytes, slices) = self.sheet.size();
        let full = bytes >= self.options.part_bytes || slices >= self.options.part_slices;
        // A clock may have gone back, and a file needs time.
        if full && time > self.sheet.from() { step(self.next_file(time)) } else { Step::Continue(()) }
    }

    fn begin_file(&mut self, time: u64) -> io::Result<()> {
        self.monitor.draw_until(&mut self.sheet, time)?;
        self.devices.count_until(&mut self.sheet, time)?;
        self.draw_memory(time)?;
        self.draw_states(time)?;
        self.cut(time);
        self.sheet.begin_file(time, self.trace.epoch_offset_ns())
    }

    fn next_file(&mut self, time: u64) -> io::Result<()> {
        let part = self.end_file(time, "in the next part")?;
        self.sheet.next_file(&part)?;
        self.cut(time);
        self.sheet.begin_file(time, self.trace.epoch_offset_ns())
    }

    fn cut(&mut self, time: u64) {
        self.flows.cut(time);
        self.threads.iter_mut().for_each(super::calls::Thread::cut);
    }

    fn end_file(&mut self, time: u64, goes_on: &str) -> io::Result<Part> {
        self.monitor.draw_until(&mut self.sheet, time)?;
        self.devices.count_until(&mut self.sheet, time)?;
        self.draw_memory(time)?;
        self.draw_states(time)?;
        let part = self.sheet.end_file(time, goes_on)?;
        let first = self.first.unwrap_or(0);
        let since = |time: u64| time.saturating_sub(first);
        let part = Part { from: since(part.from), to: since(part.to), ..part };
        self.parts.push(part);
        Ok(part)
    }

    /// A program without a call has states all the same.
    fn draw_states_only(&mut self) -> io::Result<()> {
        let whole = self.options.from.is_none() && self.options.to.is_none();
        let Some((first, last)) = self.states.extent().filter(|_| whole && self.first.is_none()) else {
            return Ok(());
        };
        self.first = Some(first);
        self.begin_file(first)?;
        self.end_file(last, "behind the window")?;
        Ok(())
    }

    /// The walk is over: writes the rest.
    pub fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        if !self.sheet.is_active() {
            return self.draw_states_only();
        }
        let to = self.options.to.and_then(|to| self.first?.checked_add(to));
        // A walk that ended with the window has seen nothing.
        match (summary.last, to) {
            (None, Some(to)) => {
                self.remark(summary, to)?;
                self.end_file(to, "behind the window")?;
            }
            (last, to) => {
                let last = last.unwrap_or(0);
                let end = to.map_or(last, |to| last.min(to)).max(self.sheet.from());
                self.end_ranges(end)?;
                self.remark(summary, end)?;
                let end_of_counters = end.saturating_add(1);
                self.monitor.draw_until(&mut self.sheet, end_of_counters)?;
                self.sheet.end_endless(end);
                self.devices.count_until(&mut self.sheet, end_of_counters)?;
                self.draw_memory(end_of_counters)?;
                self.draw_states(end_of_counters)?;
                self.end_file(end, "behind the window")?;
            }
        }
        Ok(())
    }
}
