//! How often something else may have come to lie at an address.
//!
//! Closings alone do not show that: a library that is being closed calls until it is gone, and the next one comes where it
//! was. So the first one that is opened after a closing counts, too. Which one that is stands in the same word as
//! the count: no other that is opened at the same time goes on before it has been counted.
//!
//! What can't be done: a library that calls while it is being closed, after another thread has begun to open one that comes
//! to lie where it was, is remembered as if it were that one. Nothing says when closing or opening ends.
//!
//! `tests/loom_opening.rs` explores the interleavings.

use crate::primitive::{AtomicU64, Ordering};

/// The count, in the upper bits.
#[derive(Debug)]
pub(super) struct Moves(AtomicU64);

/// A library was closed, and none was opened since.
const IS_ROOM: u64 = 1;
const ONE: u64 = 2;

impl Moves {
    /// None.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Moves(AtomicU64::new(0))
    }

    /// None.
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Moves(AtomicU64::new(0))
    }

    /// Returns how often.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire) / ONE
    }

    /// A library is about to be closed. Returns how often by then.
    pub(super) fn closing(&self) -> u64 {
        let closed = |word: u64| word.wrapping_add(ONE) | IS_ROOM;
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| Some(closed(word)));
        before.map_or_else(|word| word, closed) / ONE
    }

    /// A library is about to be opened.
    pub(super) fn opening(&self) {
        let taken = |word: u64| (word & IS_ROOM != 0).then(|| word.wrapping_add(ONE) & !IS_ROOM);
        _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_closing_counts_and_the_first_opening_after_it() {
        let moves = Moves::new();
        moves.opening();
        assert_eq!(moves.count(), 0);
        moves.closing();
        moves.closing();
        assert_eq!(moves.count(), 2);
        moves.opening();
        moves.opening();
        assert_eq!(moves.count(), 3);
        moves.closing();
        moves.opening();
        assert_eq!(moves.count(), 5);
    }
}
