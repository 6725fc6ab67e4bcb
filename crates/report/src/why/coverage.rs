//! Times when something was the case.

use std::collections::VecDeque;

/// Times that are kept apart; older ones are forgotten or closed.
const KEPT: usize = 4096;

/// When something ran, as far back as it is kept. Disjoint and in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy {
    runs: VecDeque<(u64, u64)>,
}

impl Busy {
    /// It ran then; of several, the one that began first comes first.
    pub fn add(&mut self, start: u64, end: u64) {
        match self.runs.back_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => {
                if self.runs.len() >= KEPT {
                    self.runs.pop_front();
                }
                self.runs.push_back((start, end.max(start)));
            }
        }
    }

    /// The parts of a time in which it ran.
    pub fn pieces(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.runs.partition_point(|(_, end)| *end <= from);
        let after = self.runs.range(first..).take_while(move |(start, _)| *start < to);
        after.map(move |(start, end)| (from.max(*start), to.min(*end)))
    }
}

/// How long at least one of many times was; they come in the order of their ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Union {
    /// Disjoint, in order; a time that comes later may still join them.
    open: VecDeque<(u64, u64)>,
    closed: u64,
    /// Nothing before this is added any more.
    floor: u64,
}

impl Union {
    pub fn add(&mut self, start: u64, end: u64) {
        let mut start = start.max(self.floor);
        if start >= end {
            return;
        }
        let mut end = end;
        while let Some(last) = self.open.back().filter(|last| last.1 >= start) {
            (start, end) = (start.min(last.0), end.max(last.1));
            self.open.pop_back();
        }
        self.open.push_back((start, end));
        if self.open.len() > KEPT
            && let Some((start, end)) = self.open.pop_front()
        {
            self.closed += end - start;
            self.floor = end;
        }
    }

    pub fn total(&self) -> u64 {
        self.open.iter().map(|(start, end)| end - start).fold(self.closed, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_touch_are_one() {
        let mut busy = Busy::default();
        for (start, end) in [(10, 20), (15, 18), (20, 30), (40, 50)] {
            busy.add(start, end);
        }
        assert_eq!(busy.pieces(0, 100).collect::<Vec<_>>(), [(10, 30), (40, 50)]);
        assert_eq!(busy.pieces(25, 45).collect::<Vec<_>>(), [(25, 30), (40, 45)]);
        assert_eq!(busy.pieces(60, 90).count(), 0);
    }

    #[test]
    fn a_late_time_joins_what_is_before() {
        let mut union = Union::default();
        for (start, end) in [(0, 10), (20, 30), (25, 40), (5, 50), (60, 60)] {
            union.add(start, end);
        }
        assert_eq!(union.total(), 50);
    }
}
