//! The row of the trace: what it is of, what it lost, what the tables leave out.

use std::collections::BTreeMap;
use std::fmt::Write;

use hetrace_ctf::read::Event;
use hetrace_trace::spans::Summary;
use hetrace_trace::trace::{Class, Exit, Trace};

use super::super::batch::Cell;
use super::super::tables::{SCHEMA, TRACE};
use super::super::{json, uuid};
use super::{Rows, Step};

/// Events that no table has.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// By position of the stream class and of the event class.
    counts: BTreeMap<(usize, usize), u64>,
}

impl LeftOut {
    pub fn see(&mut self, trace: &Trace, event: &Event<'_, '_>) {
        let class = event.stream_class();
        let streams = &trace.ctf().class().streams;
        let stream = streams.iter().position(|s| std::ptr::eq(s, class)).unwrap_or(usize::MAX);
        *self.counts.entry((stream, event.class_index())).or_default() += 1;
    }

    /// Their names and counts as JSON; empty if there are none.
    fn json(&self, trace: &Trace) -> String {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for ((stream, event), count) in &self.counts {
            let class = trace.classes().of_stream(*stream).get(*event);
            let about = trace.ctf().class().streams.get(*stream).and_then(|s| s.events.get(*event));
            let name = about.map_or("", |event| event.name.as_str());
            // Tables of names have the former, `telemetry` the latter.
            if matches!(class, Some(Class::Definition(_))) || name.starts_with("telemetry:") {
                continue;
            }
            *by_name.entry(name).or_default() += count;
        }
        let mut out = String::new();
        for (name, count) in by_name {
            out.push(if out.is_empty() { '{' } else { ',' });
            json::write_text(&mut out, name);
            let _ = write!(out, ":{count}");
        }
        if !out.is_empty() {
            out.push('}');
        }
        out
    }
}

impl Rows<'_, '_> {
    pub(super) fn trace_row(&mut self, summary: &Summary) -> Step {
        let (trace, manifest) = (self.trace, self.trace.manifest());
        let of_hetrace = manifest.schema != 0;
        let uuid = uuid(trace);
        let clock = trace.ctf().class().clocks.first();
        let (code, signal) = match manifest.exit {
            Some(Exit::Code(code)) => (Some(code), None),
            Some(Exit::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let time = |time: Option<u64>| -> Cell<'_> { time.map(|t| self.clock.of(t)).into() };
        let command = manifest.command.join(" ");
        let damages: Vec<String> = summary.damages.iter().map(ToString::to_string).collect();
        let (damages, left_out) = (damages.join("\n"), self.left_out.json(trace));
        let different = summary.different.join("\n");
        let notes = manifest.notes.join("\n");
        let cells: [Cell<'_>; TRACE.columns.len()] = [
            SCHEMA.into(),
            env!("CARGO_PKG_VERSION").into(),
            Cell::text(&manifest.version),
            Cell::text(&uuid),
            Cell::text(&command),
            code.into(),
            signal.into(),
            trace.epoch_offset_ns().into(),
            clock.map_or(Cell::Null, |clock| Cell::text(&clock.name)),
            of_hetrace.then_some(manifest.host_clock.error_ns as f64).into(),
            time(manifest.start_ns),
            time(manifest.end_ns),
            time(summary.first),
            time(summary.last),
            self.plans.is_some().into(),
            summary.events.into(),
            summary.calls.into(),
            summary.unfinished.into(),
            summary.orphans.into(),
            self.unknown_calls.into(),
            summary.commands.into(),
            summary.untimed.into(),
            self.without_call.into(),
            self.ranges.unmatched().into(),
            summary.lost_events.into(),
            summary.lost_calls.into(),
            summary.lost_commands.into(),
            summary.lost_processes.into(),
            summary.lost_os_events.into(),
            summary.unseen_switches.into(),
            summary.lost_packets.into(),
            summary.damaged.into(),
            Cell::text(&damages),
            summary.differences.into(),
            Cell::text(&different),
            time(summary.cut_at),
            Cell::text(&left_out),
            Cell::text(&notes),
            Cell::text(self.job.variable()),
        ];
        self.sheets.push(&TRACE, &cells)
    }
}
