//! Lines in the order of time, though a call's line is known when the call ends.
//!
//! A line is let go as soon as no open call began before it. Where too much waits for a call that takes long, that call
//! is shown in two lines, one where it begins and one where it ends: so the order holds, and memory does too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use hetrace_trace::trace::FunctionId;

/// Bytes of lines that wait; from more on, the oldest call is shown in two lines.
const MOST: usize = 64 << 20;

/// A thread's number, and how deep in its calls.
pub(super) type Place = (usize, u32);

/// A line that waits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    pub time: u64,
    depth: u32,
    /// Of equal ones, those that came first stand first.
    number: u64,
    /// Without its time, which may say how long after the line before it is.
    pub text: String,
    /// Whether the time stands before it.
    pub timed: bool,
}

/// A call that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    pub function: FunctionId,
    pub pid: i64,
    pub tid: i64,
}

/// Lines that wait, and what they wait for.
#[derive(Debug, Default)]
pub(super) struct Order {
    held: BinaryHeap<Reverse<Held>>,
    bytes: usize,
    number: u64,
    /// By beginning.
    open: BTreeMap<(u64, Place), Waited>,
    /// Calls that have a line already.
    cut: HashSet<Place>,
}

impl Order {
    /// A call begins.
    pub fn entry(&mut self, start: u64, place: Place, call: Waited) {
        // What is left there had no end.
        self.cut.remove(&place);
        self.open.insert((start, place), call);
    }

    /// A call ends, or will have no end. Returns whether it has a line already.
    pub fn exit(&mut self, start: u64, place: Place) -> bool {
        self.open.remove(&(start, place));
        !self.cut.is_empty() && self.cut.remove(&place)
    }

    /// A line for something at a time; of lines at one time, those less deep come first.
    pub fn push(&mut self, time: u64, depth: u32, timed: bool, text: String) {
        self.bytes += text.len() + size_of::<Held>();
        self.number += 1;
        self.held.push(Reverse(Held { time, depth, number: self.number, text, timed }));
    }

    /// Whether nothing waits, and a line of this time need not.
    pub fn is_idle(&self, time: u64) -> bool {
        self.held.is_empty() && self.open.first_key_value().is_none_or(|((start, _), _)| time < *start)
    }

    /// The next line that no other can come before any more, if all that comes is at `now` or later; or the next one at
    /// all, if that is none.
    pub fn next(&mut self, now: Option<u64>) -> Option<Held> {
        let open = self.open.first_key_value().map_or(u64::MAX, |((start, _), _)| *start);
        let until = now.map_or(u64::MAX, |now| now.min(open));
        let is_due = self.held.peek().is_some_and(|held| now.is_none() || held.0.time < until);
        let held = is_due.then(|| self.held.pop()).flatten()?.0;
        self.bytes = self.bytes.saturating_sub(held.text.len() + size_of::<Held>());
        Some(held)
    }

    /// Whether too much waits.
    pub fn is_full(&self) -> bool {
        self.bytes > MOST
    }

    /// Waits no more for the call that began first, which gets a line where it began and one where it ends.
    pub fn cut(&mut self) -> Option<(u64, Place, Waited)> {
        let ((start, place), call) = self.open.pop_first()?;
        self.cut.insert(place);
        Some((start, place, call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Waited {
        Waited { function: FunctionId(0), pid: 1, tid: 2 }
    }

    fn all(order: &mut Order, now: Option<u64>) -> Vec<String> {
        std::iter::from_fn(|| order.next(now)).map(|held| held.text).collect()
    }

    #[test]
    fn lines_wait_for_calls_that_began_before() {
        let mut order = Order::default();
        order.entry(10, (0, 0), call());
        order.push(20, 0, true, "twenty".to_owned());
        order.push(5, 0, true, "five".to_owned());
        assert_eq!(all(&mut order, Some(30)), ["five"]);
        assert!(!order.is_idle(30));
        assert!(!order.exit(10, (0, 0)));
        order.push(10, 0, true, "ten".to_owned());
        assert_eq!(all(&mut order, Some(30)), ["ten", "twenty"]);
        order.push(40, 1, true, "inside".to_owned());
        order.push(40, 0, true, "outside".to_owned());
        assert_eq!(all(&mut order, Some(40)), Vec::<String>::new(), "more of that time may come");
        assert_eq!(all(&mut order, None), ["outside", "inside"]);
    }

    #[test]
    fn a_call_that_holds_up_too_much_is_cut() {
        let mut order = Order::default();
        order.entry(10, (0, 0), call());
        order.push(20, 0, true, "x".repeat(MOST + 1));
        assert!(order.is_full());
        assert_eq!(order.cut(), Some((10, (0, 0), call())));
        order.push(10, 0, true, "begins".to_owned());
        assert_eq!(all(&mut order, Some(30)).len(), 2);
        assert!(order.exit(10, (0, 0)) && !order.is_full());
    }
}
