//! How rings take their places in an arena and become known: the offset behind the last one, and the entry of each in the
//! directory.
//!
//! * Whoever makes a ring takes its place by one exchange of [`Used`], so it is its maker's alone.
//! * The entry is stored with *Release* when the ring's header is written, and found with *Acquire*: who finds the
//!   entry finds the header.
//!
//! Under loom an entry is larger than in memory that is shared; what this says holds for each alone. `tests/loom_directory.rs`
//! explores the interleavings.

use crate::abi::{FIRST_RING, PAGE, directory_entry, directory_parts};
use crate::primitive::{AtomicU64, Ordering};

/// Where a ring lies and how large it is; zeroed memory: it is not complete.
#[repr(transparent)]
#[derive(Debug)]
pub struct Entry(AtomicU64);

impl Entry {
    /// Of a ring that is not complete.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Entry(AtomicU64::new(0))
    }

    /// Maker: the ring with so many data bytes at this offset is complete.
    pub fn publish(&self, offset: u64, data: u64) {
        // Pairs with the Acquire load in `word`.
        self.0.store(directory_entry(offset, data), Ordering::Release);
    }

    /// Returns the entry as it stands there; 0: the ring is not complete.
    pub fn word(&self) -> u64 {
        // Pairs with the Release store in `publish`: the ring's header is written.
        self.0.load(Ordering::Acquire)
    }

    /// Returns the ring's offset and its data bytes, if it is complete.
    pub fn find(&self) -> Option<(u64, u64)> {
        let word = self.word();
        (word != 0).then(|| directory_parts(word))
    }
}

/// The offset behind the last ring.
#[repr(transparent)]
#[derive(Debug)]
pub struct Used(AtomicU64);

impl Used {
    /// No place can be taken.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Used(AtomicU64::new(0))
    }

    /// From now on there are places, from [`FIRST_RING`] on.
    pub fn begin(&self) {
        self.0.store(FIRST_RING, Ordering::Relaxed);
    }

    /// Returns the offset.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes a place of so many bytes, which is the caller's alone, if there is one in front of `limit`. Returns its offset.
    pub fn take(&self, length: u64, limit: u64) -> Option<u64> {
        // The program may have written noise there.
        let is_place = |used: u64| used >= FIRST_RING && used.is_multiple_of(PAGE as u64);
        let room = |used: u64| used.checked_add(length).filter(|end| *end <= limit && is_place(used));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other_up_to_the_limit() {
        let (used, length) = (Used::new(), 2 * PAGE as u64);
        assert_eq!(used.take(length, u64::MAX), None, "noise, or not begun");
        used.begin();
        let limit = FIRST_RING + 2 * length + 1;
        assert_eq!(used.take(length, limit), Some(FIRST_RING));
        assert_eq!(used.take(length, limit), Some(FIRST_RING + length));
        assert_eq!((used.take(length, limit), used.get()), (None, FIRST_RING + 2 * length));
        assert_eq!(used.take(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn a_ring_is_found_when_it_is_complete() {
        let entry = Entry::new();
        assert_eq!(entry.find(), None);
        entry.publish(FIRST_RING, 1 << 16);
        assert_eq!(entry.find(), Some((FIRST_RING, 1 << 16)));
    }
}
