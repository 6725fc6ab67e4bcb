//! What a device had running, and how much of it at a time.

use hetrace_trace::spans::{CommandKind, Direction};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Window;

/// Commands at a time that are followed.
const MOST: usize = 1 << 16;

/// What a command keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    /// It computes.
    Compute,
    /// It moves memory to the device.
    ToDevice,
    /// It moves memory to the host.
    ToHost,
    /// It moves or sets memory in other ways.
    Move,
}

impl Part {
    /// Of a command; none if it keeps nothing busy.
    pub fn of(kind: CommandKind, direction: Option<Direction>) -> Option<Self> {
        match direction {
            _ if !kind.keeps_busy() => None,
            Some(Direction::ToDevice) => Some(Part::ToDevice),
            Some(Direction::ToHost) => Some(Part::ToHost),
            Some(Direction::Within | Direction::Peer) => Some(Part::Move),
            None if kind.moves_memory() => Some(Part::Move),
            None => Some(Part::Compute),
        }
    }
}

/// Sums over the time of a device, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    now: u64,
    active: BinaryHeap<Reverse<(u64, Part)>>,
    counts: [u32; 4],
    /// At least one command of each part ran.
    pub parts: [u64; 4],
    /// Anything ran.
    pub busy: u64,
    /// Something computed and something was copied.
    pub both: u64,
    /// Something was copied.
    pub copying: u64,
    /// Time of all commands.
    pub commands: u64,
    /// Most commands at a time.
    pub peak: u32,
    /// Commands that were not followed to their end: too many at a time.
    pub given_up: u64,
}

impl Sweep {
    fn until(&mut self, time: u64, window: Window) {
        let ns = window.of(self.now, time);
        self.now = self.now.max(time);
        let total = self.counts.iter().fold(0_u32, |a, b| a.saturating_add(*b));
        if ns == 0 || total == 0 {
            return;
        }
        self.busy += ns;
        self.commands = self.commands.saturating_add(ns.saturating_mul(total.into()));
        for (sum, count) in self.parts.iter_mut().zip(self.counts) {
            *sum += if count > 0 { ns } else { 0 };
        }
        if total > self.counts[0] {
            self.copying += ns;
            self.both += if self.counts[0] > 0 { ns } else { 0 };
        }
    }

    fn end_one(&mut self, window: Window) {
        if let Some(Reverse((end, part))) = self.active.pop() {
            self.until(end, window);
            self.counts[part as usize] = self.counts[part as usize].saturating_sub(1);
        }
    }

    /// A command begins; they come in the order of their starts. Returns whether nothing else runs.
    pub fn command(&mut self, start: u64, end: u64, part: Part, window: Window) -> bool {
        while self.active.peek().is_some_and(|Reverse((e, _))| *e <= start) {
            self.end_one(window);
        }
        self.until(start, window);
        let alone = self.active.is_empty();
        if self.active.len() >= MOST {
            // It counts as if it ended now.
            if let Some(Reverse((_, part))) = self.active.pop() {
                self.counts[part as usize] = self.counts[part as usize].saturating_sub(1);
                self.given_up += 1;
            }
        }
        if end > start {
            self.active.push(Reverse((end, part)));
            self.counts[part as usize] += 1;
            if window.of(start, end) > 0 {
                self.peak = self.peak.max(self.active.len() as u32);
            }
        }
        alone
    }

    /// All that runs comes to its end.
    pub fn finish(&mut self, window: Window) {
        while !self.active.is_empty() {
            self.end_one(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_counted_apart() {
        let all = Window { from: 0, to: u64::MAX };
        let mut sweep = Sweep::default();
        sweep.command(0, 10, Part::ToDevice, all);
        sweep.command(5, 25, Part::Compute, all);
        sweep.command(20, 30, Part::Compute, all);
        sweep.command(40, 45, Part::ToHost, all);
        sweep.finish(all);
        assert_eq!((sweep.busy, sweep.both, sweep.copying), (35, 5, 15));
        assert_eq!((sweep.parts[0], sweep.commands, sweep.peak), (25, 45, 2));
    }

    #[test]
    fn only_the_window_counts() {
        let window = Window { from: 8, to: 22 };
        let mut sweep = Sweep::default();
        sweep.command(0, 10, Part::Compute, window);
        sweep.command(20, 30, Part::Compute, window);
        sweep.finish(window);
        assert_eq!(sweep.busy, 4);
    }
}
