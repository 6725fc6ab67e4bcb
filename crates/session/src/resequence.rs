//! Late, unsorted records into sorted streams (Couturier and Dagenais, "LTTng CLUST", 2015, §3.3.2).
//!
//! The times of a device command are known only after it has completed, so
//! records arrive late and out of order, while every stream on disk must be
//! sorted. [`Resequencer`] keeps records back until it is known that nothing
//! older can come: the library in the program says with each batch since when
//! its oldest unreported command is in flight.
//!
//! If that was wrong after all (a clock stepped, the limit was reached),
//! nothing is lost: a record that comes too late opens another *run*, a second
//! sorted stream.

mod held;

use held::{At, Held};

/// Sorts records by key, as far as they may be held back.
#[derive(Clone, Debug)]
pub struct Resequencer<T> {
    held: Held<T>,
    /// The last key released in each run: strictly descending (see `place`).
    last: Vec<u64>,
    limit: usize,
    forced: u64,
}

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
        Self { held: Held::default(), last: Vec::new(), limit, forced: 0 }
    }

    /// Takes a record; `key` is its time in nanoseconds.
    pub fn push(&mut self, key: u64, value: T) {
        self.held.push(key, value);
    }

    /// Releases, in order, all records with a key below `watermark`, and the
    /// oldest ones beyond the capacity limit. `out` gets run, key and record;
    /// within a run keys never decrease, equal keys come in order of arrival.
    pub fn advance(&mut self, watermark: u64, out: &mut impl FnMut(usize, u64, T)) {
        while let Some((key, at)) = self.held.least() {
            if key >= watermark {
                if self.held.len() <= self.limit {
                    break;
                }
                self.forced += 1;
            }
            self.release(key, at, out);
        }
    }

    /// Releases everything, in order. More may be pushed afterwards.
    pub fn finish(&mut self, out: &mut impl FnMut(usize, u64, T)) {
        while let Some((key, at)) = self.held.least() {
            self.release(key, at, out);
        }
    }

    /// Returns how many runs there are so far: one, unless a record came too late.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.last.len()
    }

    /// Returns how many records are held back now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns how many records the capacity limit released before their time.
    #[must_use]
    pub fn forced(&self) -> u64 {
        self.forced
    }

    fn release(&mut self, key: u64, at: At, out: &mut impl FnMut(usize, u64, T)) {
        if let Some(value) = self.held.take(at) {
            let run = self.place(key);
            out(run, key, value);
        }
    }

    /// Returns the first run that may take `key`: patience sorting, which opens as few
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
