//! Commands on devices: each queue is a location, with more of them beside it for what
//! overlaps.

use std::collections::HashMap;

use hetrace_trace::ranges::Ranges;
use hetrace_trace::spans::{At, Command, CommandKind};
use hetrace_trace::titles::{queue_name, queue_title};
use hetrace_trace::trace::Trace;

use super::super::definitions::LocationKind;
use super::super::events::Value;
use super::super::lanes::{Lanes, Place, Whole};
use super::output::{Attribute, NOTHING, Output, With};
use super::places::Places;
use super::ranks::{Windows, between};
use super::regions::Regions;
use super::threads::Threads;
use crate::Error;

/// A queue.
#[derive(Debug)]
struct Queue {
    lanes: Lanes,
    paradigm: u8,
}

/// All queues so far.
#[derive(Debug, Default)]
pub(in crate::otf2) struct Queues {
    by_id: HashMap<(i64, u32), usize>,
    all: Vec<Queue>,
    with: With,
    /// Commands that found no place.
    pub crowded: u64,
    /// Commands without times, which have no length.
    pub untimed: u64,
}

/// What commands are written with.
pub(in crate::otf2) struct Around<'a, 't> {
    pub trace: &'t Trace,
    pub ranges: &'a Ranges<'t>,
    pub regions: &'a mut Regions<'t>,
    pub places: &'a mut Places<'t>,
    pub threads: &'a Threads,
    pub windows: &'a mut Windows,
}

impl Queues {
    /// A command ran.
    pub fn command(
        &mut self,
        out: &mut Output,
        around: Around<'_, '_>,
        at: At<'_>,
        command: &Command<'_>,
    ) -> Result<(), Error> {
        let Around { trace, ranges, regions, places, threads, windows } = around;
        let id = (command.pid, command.on_queue.map_or(0, |q| q.id));
        let index = match self.by_id.get(&id) {
            Some(index) => *index,
            None => {
                let definitions = &mut out.archive.definitions;
                let process = places.process(definitions, command.pid, "");
                let group = places.accelerator(definitions, command, process);
                let name = queue_title(trace, command.on_queue, queue_name(ranges, command));
                let paradigm = regions.paradigm(command.on_queue.map_or("", |q| &q.api)).number;
                self.all.push(Queue { lanes: Lanes::new(name, LocationKind::Stream, group), paradigm });
                self.by_id.insert(id, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        let Some(queue) = self.all.get_mut(index) else { return Ok(()) };
        let start = command.times.map_or(at.time, |t| t.start);
        let end = command.times.map_or(start, |t| t.end.max(start));
        self.untimed += u64::from(command.times.is_none());
        let region = regions.command(&mut out.archive.definitions, command, queue.paradigm);
        // A graph and its nodes have the call in common.
        let of = hetrace_trace::spans::cause_id(
            command.cause_tid,
            i64::try_from(command.graph).unwrap_or(0),
            command.cause,
        );
        let (lanes, archive) = (&mut queue.lanes, &mut out.archive);
        let whole = command.kind == CommandKind::Graph;
        let place = if whole {
            lanes.take_whole(archive, start, Whole { of, region, end })
        } else if command.graph > 0 {
            lanes.take_part(archive, start, end, of)
        } else {
            lanes.take(archive, start, end)
        };
        let Some(Place { location, leave, .. }) = place else {
            self.crowded += 1;
            return Ok(());
        };
        if let Some(whole) = leave {
            out.leave(location, whole.end, whole.region, &NOTHING)?;
        }
        annotate(&mut self.with, command);
        if whole {
            return out.enter(location, start, region, &self.with);
        }
        let access =
            between(command).and_then(|to| windows.access(command, (to, queue.paradigm), location, threads));
        out.whole(location, (start, end), region, &self.with, access)
    }

    /// Leaves what is still open.
    pub fn finish(&mut self, out: &mut Output) -> Result<(), Error> {
        for queue in &mut self.all {
            for (location, whole) in queue.lanes.open() {
                out.leave(location, whole.end, whole.region, &NOTHING)?;
            }
        }
        Ok(())
    }
}

fn annotate(with: &mut With, command: &Command<'_>) {
    with.clear();
    if command.bytes > 0 {
        with.add(Attribute::Bytes, Value::Unsigned(command.bytes));
    }
    if command.failed() {
        with.add(Attribute::Status, Value::Signed(command.status));
    }
    if command.times.is_none() {
        with.add(Attribute::TimesError, Value::Signed(command.times_error));
    }
    if command.weight > 1 {
        with.add(Attribute::Launches, Value::Unsigned(command.weight));
    }
    if command.graph > 0 && command.kind != CommandKind::Graph {
        with.add(Attribute::Graph, Value::Unsigned(command.graph));
        with.add(Attribute::Node, Value::Unsigned(command.node));
    }
}
