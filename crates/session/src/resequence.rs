//! Late, unsorted records into sorted streams (Couturier and Dagenais, "LTTng CLUST", 2015, §3.3.2).
//!
//! The times of a device command are known only after it has completed, so
//! records arrive late and out of order, while every stream on disk must be
//! sorted. [`Resequencer`] keeps records back until it is told that nothing
//! older can come: the library in the program says with each batch since when
//! its oldest unreported command is under way.
//!
//! If that was wrong after all (a clock stepped, the limit was reached),
//! nothing is lost: a record that comes too late opens another *run*, a second
//! sorted stream.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Sorts records by key, as far as they may be held back.
#[derive(Clone, Debug)]
pub struct Resequencer<T> {
    held: BinaryHeap<Entry<T>>,
    arrivals: u64,
    /// The last key released in each run: strictly descending (see `place`).
    last: Vec<u64>,
    limit: usize,
    forced: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    key: u64,
    arrival: u64,
    value: T,
}

impl<T> Ord for Entry<T> {
    /// Reversed: the heap gives its greatest, and we want the least key; of
    /// equal keys the first to arrive.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.key, other.arrival).cmp(&(self.key, self.arrival))
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

impl<T> Default for Resequencer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Resequencer<T> {
    /// Holds as many records as necessary.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity_limit(usize::MAX)
    }

    /// Holds at most `limit` records from one [`advance`](Self::advance) to the
    /// next: it releases the oldest early when there are more, whatever the
    /// watermark says. Between two calls `push` may exceed the limit.
    #[must_use]
    pub fn with_capacity_limit(limit: usize) -> Self {
        Self { held: BinaryHeap::new(), arrivals: 0, last: Vec::new(), limit, forced: 0 }
    }

    /// Takes a record; `key` is its time in nanoseconds.
    pub fn push(&mut self, key: u64, value: T) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.held.push(Entry { key, arrival, value });
    }

    /// Releases, in order, all records with a key below `watermark`, and the
    /// oldest ones beyond the capacity limit. `out` gets run, key and record;
    /// within a run keys never decrease, equal keys come in order of arrival.
    pub fn advance(&mut self, watermark: u64, out: &mut impl FnMut(usize, u64, T)) {
        while let Some(first) = self.held.peek() {
            if first.key >= watermark {
                if self.held.len() <= self.limit {
                    break;
                }
                self.forced += 1;
            }
            self.release(out);
        }
    }

    /// Releases everything, in order. More may be pushed afterwards.
    pub fn finish(&mut self, out: &mut impl FnMut(usize, u64, T)) {
        while !self.held.is_empty() {
            self.release(out);
        }
    }

    /// How many runs there are so far: one, unless a record came too late.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.last.len()
    }

    /// How many records are held back now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// How many records the capacity limit released before their time.
    #[must_use]
    pub fn forced(&self) -> u64 {
        self.forced
    }

    fn release(&mut self, out: &mut impl FnMut(usize, u64, T)) {
        if let Some(Entry { key, value, .. }) = self.held.pop() {
            let run = self.place(key);
            out(run, key, value);
        }
    }

    /// The first run that may take `key`: patience sorting, which opens as few
    /// runs as the order of release allows. Every run before it ended above
    /// `key`, and every run after it ended below its old end, so the ends stay
    /// strictly descending and can be searched.
    fn place(&mut self, key: u64) -> usize {
        let run = self.last.partition_point(|&last| last > key);
        match self.last.get_mut(run) {
            Some(last) => *last = key,
            None => self.last.push(key),
        }
        run
    }
}

#[cfg(test)]
mod tests;
