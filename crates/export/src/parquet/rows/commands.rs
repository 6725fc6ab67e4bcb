//! Rows of commands, which are held back until somebody has waited for them.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use hetrace_trace::demangle;
use hetrace_trace::spans::{Command, Geometry, Sizes, Times, cause_id};
use hetrace_trace::waits::Wait;

use super::super::batch::Cell;
use super::super::tables::COMMANDS;
use super::{Rows, Step, Stop, ns};

/// Calls that are remembered for the commands that they cause.
const KEPT: usize = 1 << 20;

/// A call that put work on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// Its number.
    pub call: i64,
    /// That of the call for operations among ranks that it is in.
    pub launch: Option<i64>,
}

/// The last calls that put work on devices.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// By [`cause_id`].
    calls: HashMap<u64, Cause>,
    /// The same in the order in which they came.
    order: VecDeque<u64>,
}

impl Causes {
    pub fn called(&mut self, cause: u64, call: Cause) {
        if self.calls.insert(cause, call).is_none() {
            self.order.push_back(cause);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    fn call_of(&self, cause: u64) -> Option<Cause> {
        self.calls.get(&cause).copied()
    }
}

/// Names of kernels as people wrote them.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    by_number: HashMap<u32, String>,
}

impl Kernels {
    fn name(&mut self, number: u32, symbol: &str) -> &str {
        self.by_number.entry(number).or_insert_with(|| demangle::full(symbol).into_owned())
    }
}

/// A word of the trace, or NULL if it was not reported.
fn reported(text: &str) -> Cell<'_> {
    if text == "unknown" { Cell::Null } else { Cell::text(text) }
}

fn size(sizes: &Sizes, dimension: usize) -> Cell<'static> {
    sizes.as_slice().get(dimension).copied().into()
}

/// A command until it is known who waited for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    pub id: i64,
    /// Words of the trace, by their places.
    kind: u32,
    from: u32,
    to: u32,
    pid: i64,
    queue: Option<u32>,
    device: Option<u32>,
    peer: Option<u32>,
    kernel: Option<u32>,
    times: Option<Times>,
    times_error: i64,
    /// When it was recorded.
    recorded: u64,
    weight: u64,
    bytes: u64,
    status: i64,
    geometry: Geometry,
    shared: u64,
    graph: u64,
    node: u64,
    caused_by: Option<Cause>,
    cause_tid: i64,
    cause: u64,
}

/// Who waited for a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub call: i64,
    pub start: u64,
    pub end: u64,
}

/// Few words that come again and again.
#[derive(Debug, Default)]
pub(super) struct Words {
    all: Vec<String>,
}

impl Words {
    fn place(&mut self, word: &str) -> u32 {
        let at = self.all.iter().position(|known| known == word).unwrap_or_else(|| {
            self.all.push(word.to_owned());
            self.all.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn get(&self, place: u32) -> &str {
        self.all.get(place as usize).map_or("", String::as_str)
    }
}

impl Rows<'_, '_> {
    /// `recorded`: when, if it is not known when it ran.
    pub(super) fn ran(&mut self, command: &Command<'_>, recorded: u64) -> Step {
        self.commands += 1;
        let known = command.cause != 0;
        let cause = cause_id(command.pid, command.cause_tid, command.cause);
        let caused_by = self.causes.call_of(cause).filter(|_| known);
        self.without_call += u64::from(caused_by.is_none());
        let [kind, from, to] =
            [command.kind.name(), command.from.name(), command.to.name()].map(|word| self.words.place(word));
        let ran = Ran {
            id: self.commands,
            kind,
            from,
            to,
            pid: command.pid,
            queue: command.on_queue.map(|q| q.id),
            device: command.on_device.map(|d| d.id),
            peer: command.peer.map(|d| d.id),
            kernel: command.function.map(|k| k.id),
            times: command.times,
            times_error: command.times_error,
            recorded,
            weight: command.weight,
            bytes: command.bytes,
            status: command.status,
            geometry: command.geometry,
            shared: command.shared,
            graph: command.graph,
            node: command.node,
            caused_by,
            cause_tid: command.cause_tid,
            cause: command.cause,
        };
        let old = self.waits.command(command, ran);
        old.iter().try_for_each(|ran| self.command_row(ran, None))
    }

    /// Writes what a call waited for; returns the number of the command that it ended on.
    pub(super) fn waited(&mut self, wait: &Wait, call: i64) -> ControlFlow<Stop, Option<i64>> {
        let waited = self.waits.waited(wait);
        let waiter = Waiter { call, start: wait.start, end: wait.end };
        for ran in &waited.all {
            self.command_row(ran, Some(waiter))?;
        }
        ControlFlow::Continue(waited.last.and_then(|at| waited.all.get(at)).map(|ran| ran.id))
    }

    /// Writes the commands that no call waited for.
    pub(super) fn finish_commands(&mut self) -> Step {
        let rest = self.waits.take_unwaited();
        rest.iter().try_for_each(|ran| self.command_row(ran, None))
    }

    /// Writes a command, with the call that waited for it if there is one.
    fn command_row(&mut self, ran: &Ran, waiter: Option<Waiter>) -> Step {
        let (clock, names, times) = (self.clock, self.trace.names(), ran.times);
        let time = |of: fn(&Times) -> u64| -> Cell<'_> { times.map(|t| clock.of(of(&t))).into() };
        let queue = ran.queue.and_then(|id| names.queue(id));
        let [device, peer] = [ran.device, ran.peer].map(|id| names.device(id?));
        let kernel = ran.kernel.and_then(|id| names.kernel(id));
        let (known, in_graph, g, job_rank) =
            (ran.cause != 0, ran.graph != 0, &ran.geometry, self.job_rank(ran.pid));
        let kernel_name = kernel.map(|k| self.kernels.name(k.id, &k.name));
        let cells: [Cell<'_>; COMMANDS.columns.len()] = [
            ran.id.into(),
            ran.pid.into(),
            queue.map_or(Cell::Null, |q| Cell::text(&q.api)),
            device.map(|d| d.id).into(),
            device.map_or(Cell::Null, |d| Cell::text(&d.name)),
            device.map_or(Cell::Null, |d| Cell::text(&d.uuid)),
            queue.map(|q| q.id).into(),
            queue.map(|q| q.handle).into(),
            title(kernel_name).unwrap_or_else(|| self.words.get(ran.kind).into()),
            self.words.get(ran.kind).into(),
            kernel.map(|k| k.id).into(),
            kernel.map_or(Cell::Null, |k| Cell::text(&k.name)),
            kernel_name.map_or(Cell::Null, Cell::text),
            clock.of(times.map_or(ran.recorded, |t| t.start)).into(),
            time(|t| t.end),
            times.map_or(Cell::Null, |t| ns(t.duration())),
            time(|t| t.queued),
            time(|t| t.submitted),
            if times.is_some() { Cell::Null } else { ran.times_error.into() },
            ran.weight.into(),
            ran.bytes.into(),
            reported(self.words.get(ran.from)),
            reported(self.words.get(ran.to)),
            peer.map(|d| d.id).into(),
            peer.map_or(Cell::Null, |d| Cell::text(&d.name)),
            ran.status.into(),
            size(&g.global, 0),
            size(&g.global, 1),
            size(&g.global, 2),
            size(&g.local, 0),
            size(&g.local, 1),
            size(&g.local, 2),
            size(&g.offset, 0),
            size(&g.offset, 1),
            size(&g.offset, 2),
            size(&g.cluster, 0),
            size(&g.cluster, 1),
            size(&g.cluster, 2),
            ran.shared.into(),
            in_graph.then_some(ran.graph).into(),
            in_graph.then_some(ran.node).into(),
            ran.caused_by.map(|cause| cause.call).into(),
            known.then_some(ran.cause_tid).into(),
            known.then(|| clock.of(ran.cause)).into(),
            waiter.map(|w| w.call).into(),
            waiter.map(|w| clock.of(w.start)).into(),
            waiter.map(|w| clock.of(w.end)).into(),
            ran.caused_by.and_then(|cause| cause.launch).into(),
            job_rank.into(),
        ];
        self.sheets.push(&COMMANDS, &cells)
    }
}

/// What people look for where a function runs.
fn title(kernel: Option<&str>) -> Option<Cell<'_>> {
    kernel.filter(|name| !name.is_empty()).map(Cell::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_million_of_calls_is_known() {
        let mut causes = Causes::default();
        let all = KEPT as u64 + 10;
        let cause = |n: u64| Cause { call: n as i64 + 1, launch: None };
        (0..all).for_each(|n| causes.called(n, cause(n)));
        assert_eq!(causes.call_of(9), None);
        assert_eq!(causes.call_of(10), Some(cause(10)));
        assert_eq!(causes.call_of(all - 1), Some(cause(all - 1)));
        assert_eq!(causes.calls.len(), KEPT);
    }
}
