//! Records in waiting, of which the least is wanted.
//!
//! They come almost sorted: by stream, by buffer. What continues one of a few tapes is
//! put behind it, and the least is at the front of one of them, so nothing is ever
//! moved; the rest goes to a heap.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// How many tapes there are: looking at all of them must cost less than a heap.
const TAPES: usize = 8;

/// A record with its place in the order.
#[derive(Clone, Debug)]
struct Entry<T> {
    key: u64,
    arrival: u64,
    value: T,
}

impl<T> Entry<T> {
    fn place(&self) -> (u64, u64) {
        (self.key, self.arrival)
    }
}

impl<T> Ord for Entry<T> {
    /// Reversed: the heap gives its greatest, and we want the least key; of
    /// equal keys the first to arrive.
    fn cmp(&self, other: &Self) -> Ordering {
        other.place().cmp(&self.place())
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

/// Where the least record is.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    Tape(usize),
    Heap,
}

#[derive(Clone, Debug)]
pub(super) struct Held<T> {
    tapes: [VecDeque<Entry<T>>; TAPES],
    heap: BinaryHeap<Entry<T>>,
    arrivals: u64,
    length: usize,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { tapes: Default::default(), heap: BinaryHeap::new(), arrivals: 0, length: 0 }
    }
}

impl<T> Held<T> {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, key: u64, value: T) {
        let entry = Entry { key, arrival: self.arrivals, value };
        self.arrivals += 1;
        self.length += 1;
        // Behind the one that ends closest before it, so that the others stay open for
        // what is earlier; an empty one ends before all.
        let end = |tape: &VecDeque<Entry<T>>| tape.back().map(|last| last.key);
        let open = self.tapes.iter_mut().filter(|tape| end(tape) <= Some(key));
        match open.max_by_key(|tape| end(tape)) {
            Some(tape) => tape.push_back(entry),
            None => self.heap.push(entry),
        }
    }

    /// Returns the least key, and where it is.
    pub(super) fn least(&self) -> Option<(u64, At)> {
        let fronts =
            self.tapes.iter().enumerate().filter_map(|(i, tape)| Some((tape.front()?.place(), At::Tape(i))));
        let all = fronts.chain(self.heap.peek().map(|entry| (entry.place(), At::Heap)));
        all.min_by_key(|(place, _)| *place).map(|((key, _), at)| (key, at))
    }

    /// Takes the record from where [`Held::least`] found it.
    pub(super) fn take(&mut self, at: At) -> Option<T> {
        let entry = match at {
            At::Tape(i) => self.tapes.get_mut(i)?.pop_front(),
            At::Heap => self.heap.pop(),
        }?;
        self.length -= 1;
        Some(entry.value)
    }
}
