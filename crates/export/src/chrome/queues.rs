//! Rows of queues, and commands in flight.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use hetrace_trace::spans::Command;
use hetrace_trace::titles::{device_title, queue_label};
use hetrace_trace::trace::Trace;

use super::QUEUES;

/// Rows of a queue at most; more commands than these at a time share the last.
const ROWS: usize = 64;
/// Ends that are held back until their time has come.
const HELD: usize = 1 << 20;

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub pid: i64,
    pub name: String,
    /// Until when each row is taken, and its thread number.
    rows: Vec<(u64, u64)>,
    /// Ends of commands in flight.
    ends: BinaryHeap<Reverse<u64>>,
    /// Beginnings not yet written, in order.
    begins: BinaryHeap<Reverse<u64>>,
    level: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_id: HashMap<(i64, u32), usize>,
    pub all: Vec<Queue>,
    rows: u64,
}

impl Queues {
    /// The queue of a command.
    pub fn of(&mut self, trace: &Trace, command: &Command<'_>) -> usize {
        let id = (command.pid, command.on_queue.map_or(0, |q| q.id));
        *self.by_id.entry(id).or_insert_with(|| {
            let device = device_title(trace, command.on_device);
            let queue = queue_label(trace, command.on_queue, None);
            self.all.push(Queue {
                pid: command.pid,
                name: format!("{device}: {queue}"),
                rows: Vec::new(),
                ends: BinaryHeap::new(),
                begins: BinaryHeap::new(),
                level: 0,
            });
            self.all.len() - 1
        })
    }

    /// The thread number of a row that is free from `start` on and now is taken until `end`, and
    /// whether it is new.
    pub fn row(&mut self, queue: usize, start: u64, end: u64) -> Option<(u64, bool)> {
        let queue = self.all.get_mut(queue)?;
        if let Some(row) = queue.rows.iter_mut().find(|row| row.0 <= start) {
            row.0 = end;
            return Some((row.1, false));
        }
        if queue.rows.len() >= ROWS {
            return queue.rows.last().map(|row| (row.1, false));
        }
        let number = QUEUES + self.rows;
        self.rows += 1;
        queue.rows.push((end, number));
        Some((number, true))
    }
}

impl Queue {
    /// A command is in flight.
    pub fn fly(&mut self, enqueued: u64, end: u64) {
        if self.begins.len() < HELD && end > enqueued {
            self.begins.push(Reverse(enqueued));
            self.ends.push(Reverse(end));
        }
    }

    /// Nothing will come that begins before `time`: the next moment before it at which the number
    /// of commands in flight changes, and the number from then on.
    pub fn next_before(&mut self, time: u64) -> Option<(u64, u64)> {
        let begin = self.begins.peek().map(|Reverse(at)| *at);
        let end = self.ends.peek().map(|Reverse(at)| *at);
        let at = begin.into_iter().chain(end).min().filter(|at| *at < time)?;
        while self.begins.peek() == Some(&Reverse(at)) {
            self.begins.pop();
            self.level += 1;
        }
        while self.ends.peek() == Some(&Reverse(at)) {
            self.ends.pop();
            self.level = self.level.saturating_sub(1);
        }
        Some((at, self.level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_flight_are_counted_in_order() {
        let mut queue = Queue {
            pid: 1,
            name: String::new(),
            rows: Vec::new(),
            ends: BinaryHeap::new(),
            begins: BinaryHeap::new(),
            level: 0,
        };
        queue.fly(10, 50);
        queue.fly(20, 30);
        queue.fly(30, 30);
        assert_eq!(queue.next_before(30), Some((10, 1)));
        assert_eq!(queue.next_before(30), Some((20, 2)));
        assert_eq!(queue.next_before(30), None);
        queue.fly(30, 60);
        let rest: Vec<_> = std::iter::from_fn(|| queue.next_before(u64::MAX)).collect();
        assert_eq!(rest, [(30, 2), (50, 1), (60, 0)]);
    }
}
