//! Rows of commands.

use std::collections::{HashMap, VecDeque};

use hetrace_analyze::demangle;
use hetrace_analyze::spans::{Command, Sizes, cause_id};

use super::super::batch::Cell;
use super::super::tables::COMMANDS;
use super::{Rows, Step, ns};

/// Calls that are remembered for the commands that they cause.
const KEPT: usize = 1 << 20;

/// The last calls that put work on devices.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// From [`cause_id`] to the call's number.
    calls: HashMap<u64, i64>,
    /// The same in the order in which they came.
    order: VecDeque<u64>,
}

impl Causes {
    pub fn called(&mut self, cause: u64, call: i64) {
        if self.calls.insert(cause, call).is_none() {
            self.order.push_back(cause);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    fn call_of(&self, cause: u64) -> Option<i64> {
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

/// What was not told, by a word of the trace.
fn told(text: &str) -> Cell<'_> {
    if text == "unknown" { Cell::Null } else { Cell::text(text) }
}

fn size(sizes: &Sizes, dimension: usize) -> Cell<'static> {
    sizes.as_slice().get(dimension).copied().into()
}

impl Rows<'_, '_> {
    /// `recorded`: when, if nobody knows when it ran.
    pub(super) fn ran(&mut self, command: &Command<'_>, recorded: u64) -> Step {
        self.commands += 1;
        let known = command.cause != 0;
        let cause = cause_id(command.pid, command.cause_tid, command.cause);
        let cause_call = self.causes.call_of(cause).filter(|_| known);
        self.without_call += u64::from(cause_call.is_none());
        let clock = self.clock;
        let times = command.times;
        let start = times.map_or(recorded, |t| t.start);
        let time = |of: fn(&hetrace_analyze::spans::Times) -> u64| -> Cell<'_> {
            times.map(|t| clock.of(of(&t))).into()
        };
        let (queue, device, peer) = (command.on_queue, command.on_device, command.peer);
        let kernel = command.function;
        let kernel_name = kernel.map(|k| self.kernels.name(k.id, &k.name));
        let (in_graph, g) = (command.graph != 0, &command.geometry);
        let cells: [Cell<'_>; COMMANDS.columns.len()] = [
            self.commands.into(),
            command.pid.into(),
            queue.map_or(Cell::Null, |q| Cell::text(&q.api)),
            device.map(|d| d.id).into(),
            device.map_or(Cell::Null, |d| Cell::text(&d.name)),
            device.map_or(Cell::Null, |d| Cell::text(&d.uuid)),
            queue.map(|q| q.id).into(),
            queue.map(|q| q.handle).into(),
            command.kind.into(),
            kernel.map(|k| k.id).into(),
            kernel.map_or(Cell::Null, |k| Cell::text(&k.name)),
            kernel_name.map_or(Cell::Null, Cell::text),
            clock.of(start).into(),
            time(|t| t.end),
            times.map_or(Cell::Null, |t| ns(t.duration())),
            time(|t| t.queued),
            time(|t| t.submitted),
            if times.is_some() { Cell::Null } else { command.times_error.into() },
            command.weight.into(),
            command.bytes.into(),
            told(command.from),
            told(command.to),
            peer.map(|d| d.id).into(),
            peer.map_or(Cell::Null, |d| Cell::text(&d.name)),
            command.status.into(),
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
            command.shared.into(),
            in_graph.then_some(command.graph).into(),
            in_graph.then_some(command.node).into(),
            cause_call.into(),
            known.then_some(command.cause_tid).into(),
            known.then(|| clock.of(command.cause)).into(),
        ];
        self.sheets.push(&COMMANDS, &cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_million_of_calls_is_known() {
        let mut causes = Causes::default();
        let all = KEPT as u64 + 10;
        (0..all).for_each(|n| causes.called(n, n as i64 + 1));
        assert_eq!(causes.call_of(9), None);
        assert_eq!(causes.call_of(10), Some(11));
        assert_eq!(causes.call_of(all - 1), Some(all as i64));
        assert_eq!(causes.calls.len(), KEPT);
    }
}
