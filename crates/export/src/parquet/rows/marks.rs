//! Rows of ranges, and which one is the innermost.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use hetrace_trace::ranges::{Counted, Payload, Range, Step as Marked};
use hetrace_trace::spans::{At, Summary};
use hetrace_trace::trace::{Thread, ThreadId};

use super::super::batch::Cell;
use super::super::tables::{COUNTERS, RANGES};
use super::{Rows, Step, ns};

/// Ranges of threads that are open: pushed ones, and those between probes.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Of each thread, the innermost last: key and message.
    pushed: HashMap<ThreadId, Vec<(u64, Arc<str>)>>,
}

impl Marks {
    pub fn innermost(&self, thread: ThreadId) -> Option<&Arc<str>> {
        if self.pushed.is_empty() {
            return None;
        }
        self.pushed.get(&thread)?.last().map(|(_, message)| message)
    }
}

/// How a range was, as the table calls it, and who ended it when.
struct How {
    style: &'static str,
    end: Option<u64>,
    by: Option<i64>,
}

impl Rows<'_, '_> {
    pub(super) fn marked(&mut self, at: At<'_>, step: Option<Marked>) -> Step {
        match step {
            None => ControlFlow::Continue(()),
            Some(Marked::Counted(counted)) => self.counted(at, &counted),
            Some(Marked::Begun(range)) => {
                if range.style.nests() {
                    let open = self.marks.pushed.entry(range.thread).or_default();
                    open.push((range.key, Arc::clone(&range.message)));
                }
                ControlFlow::Continue(())
            }
            Some(Marked::Ended { range, end, by }) => {
                if let Some(open) = self.marks.pushed.get_mut(&range.thread) {
                    open.retain(|(key, _)| *key != range.key);
                }
                let by = at.threads.get(by).tid;
                let how = How { style: range.style.name(), end: Some(end), by: Some(by) };
                self.range(&range, at.threads.get(range.thread), &how)
            }
            Some(Marked::Mark(range)) => {
                let how = How { style: "mark", end: Some(range.begin), by: None };
                self.range(&range, at.threads.get(range.thread), &how)
            }
        }
    }

    /// Writes the ranges that were never ended.
    pub(super) fn open_ranges(&mut self, summary: &Summary) -> Step {
        let open: Vec<Range> = self.ranges.open().into_iter().cloned().collect();
        for range in open {
            let how = How { style: range.style.name(), end: None, by: None };
            let unknown = Thread::default();
            let thread = summary.threads.get(range.thread.index()).unwrap_or(&unknown);
            self.range(&range, thread, &how)?;
        }
        ControlFlow::Continue(())
    }

    fn counted(&mut self, at: At<'_>, counted: &Counted) -> Step {
        let who = at.who();
        // Of a type that is not known the value is none.
        let value = if counted.value.is_finite() { Cell::Float(counted.value) } else { Cell::Null };
        let cells: [Cell<'_>; COUNTERS.columns.len()] = [
            who.pid.into(),
            who.tid.into(),
            Cell::text(&counted.domain),
            Cell::text(&counted.name),
            self.clock.of(counted.time).into(),
            value,
            self.job_rank(who.pid).into(),
        ];
        self.sheets.push(&COUNTERS, &cells)
    }

    fn range(&mut self, range: &Range, thread: &Thread, how: &How) -> Step {
        let payload = range.payload.map(|payload| match payload {
            Payload::Unsigned(v) => v.to_string(),
            Payload::Signed(v) => v.to_string(),
            Payload::Float(v) => v.to_string(),
            Payload::Bits(v) => format!("{v:#x}"),
        });
        let clock = self.clock;
        let cells: [Cell<'_>; RANGES.columns.len()] = [
            range.key.into(),
            thread.pid.into(),
            thread.tid.into(),
            Cell::text(&thread.name),
            how.style.into(),
            Cell::text(&range.domain),
            Cell::text(&range.category),
            Cell::text(&range.message),
            Cell::number(range.color),
            payload.as_deref().into(),
            clock.of(range.begin).into(),
            how.end.map(|end| clock.of(end)).into(),
            how.end.map_or(Cell::Null, |end| ns(end.saturating_sub(range.begin))),
            how.by.into(),
            self.job_rank(thread.pid).into(),
        ];
        self.sheets.push(&RANGES, &cells)
    }
}
