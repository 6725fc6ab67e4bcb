//! Counters made of many things that each count from one moment to another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How much there is of something at a time. It holds changes back until
/// nothing earlier can come, so as many as overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    changes: BinaryHeap<Reverse<(u64, i64)>>,
    /// Signed and wide: no sum of a trace overflows it.
    level: i128,
    reported: i128,
    /// Nothing earlier than this is taken any more.
    floor: u64,
}

impl Steps {
    /// From `from` to `to` there is `amount` more. What is too early for the
    /// order begins as early as possible.
    pub fn add(&mut self, from: u64, to: u64, amount: i64) {
        let from = from.max(self.floor);
        if to > from {
            self.changes.push(Reverse((from, amount)));
            self.changes.push(Reverse((to, amount.saturating_neg())));
        }
    }

    /// Nothing will come that begins before `time`: the next moment before it
    /// at which the level changes, and the level from then on.
    pub fn next_before(&mut self, time: u64) -> Option<(u64, f64)> {
        self.floor = self.floor.max(time);
        self.next_while(|_, at| at < time)
    }

    /// The same for what comes in no order: the earliest moment, if more than `held` changes wait.
    /// What will come begins after it, or is too late.
    pub fn next_beyond(&mut self, held: usize) -> Option<(u64, f64)> {
        let next = self.next_while(|waiting, _| waiting > held);
        if let Some((time, _)) = next {
            self.floor = self.floor.max(time);
        }
        next
    }

    fn next_while(&mut self, goes: impl Fn(usize, u64) -> bool) -> Option<(u64, f64)> {
        while let Some(&Reverse((at, _))) = self.changes.peek() {
            if !goes(self.changes.len(), at) {
                return None;
            }
            while let Some(&Reverse((next, change))) = self.changes.peek()
                && next == at
            {
                self.level += i128::from(change);
                self.changes.pop();
            }
            if self.level != self.reported {
                self.reported = self.level;
                return Some((at, self.level as f64));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_before(steps: &mut Steps, time: u64) -> Vec<(u64, f64)> {
        std::iter::from_fn(|| steps.next_before(time)).collect()
    }

    #[test]
    fn levels_come_in_the_order_of_time() {
        let mut steps = Steps::default();
        steps.add(0, 10, 1);
        steps.add(2, 5, 1);
        assert_eq!(all_before(&mut steps, 5), [(0, 1.0), (2, 2.0)]);
        // One begins when the other ends: no change. One comes too late.
        steps.add(5, 20, 1);
        steps.add(1, 6, 3);
        assert_eq!(all_before(&mut steps, u64::MAX), [(5, 5.0), (6, 2.0), (10, 1.0), (20, 0.0)]);
    }

    #[test]
    fn what_is_held_back_may_begin_earlier() {
        let mut steps = Steps::default();
        steps.add(10, 20, 1);
        steps.add(5, 30, 1);
        assert_eq!(steps.next_beyond(4), None);
        steps.add(1, 2, 1);
        let changes: Vec<_> = std::iter::from_fn(|| steps.next_beyond(4)).collect();
        assert_eq!(changes, [(1, 1.0), (2, 0.0)]);
        // This is too late by one.
        steps.add(1, 40, 1);
        assert_eq!(
            all_before(&mut steps, u64::MAX),
            [(2, 1.0), (5, 2.0), (10, 3.0), (20, 2.0), (30, 1.0), (40, 0.0)]
        );
    }
}
