//! What a process takes of the memory that its launcher lets it have, until the launcher looks again.
//!
//! The launcher raises the number of its look when it has counted what is in use. What was taken stands in one word
//! with the look that it is of, so that threads that take at once neither forget what another took nor take more than
//! there is. (The process may stand in the look's place: a forked child has taken nothing. Linux numbers processes up to
//! 2²², and a word has 24 bits of the look.)
//!
//! `tests/loom_process.rs` explores the interleavings.

use crate::primitive::{AtomicU64, Ordering};

/// Pages taken, in the low bits, and the low bits of the look's number above them. Zeroed memory: nothing was taken.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Share(AtomicU64);

const PAGE: u64 = 4096;
const PAGES_BITS: u32 = 40;
const PAGES: u64 = (1 << PAGES_BITS) - 1;

/// A word of that look in which nothing is taken.
fn of(look: u32) -> u64 {
    u64::from(look) << PAGES_BITS
}

fn pages(word: u64, look: u32) -> u64 {
    if word & !PAGES == of(look) { word & PAGES } else { 0 }
}

impl Share {
    /// Nothing taken.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Share(AtomicU64::new(0))
    }

    /// Nothing taken.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Share(AtomicU64::new(0))
    }

    /// Whether bytes are taken since some look, perhaps an earlier one.
    #[inline]
    pub(crate) fn is_any_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed) & PAGES != 0
    }

    /// Bytes taken since that look.
    pub(crate) fn taken(&self, look: u32) -> u64 {
        pages(self.0.load(Ordering::Relaxed), look) * PAGE
    }

    /// Takes so many bytes of `budget`, in whole pages. Returns whether there were as many.
    pub(crate) fn take(&self, look: u32, budget: u64, bytes: u64) -> bool {
        let more = |word: u64| {
            let now = pages(word, look).checked_add(bytes.div_ceil(PAGE))?;
            (now <= (budget / PAGE).min(PAGES)).then(|| of(look) | now)
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives bytes back. What was taken before the launcher looked, that has counted already.
    pub(crate) fn give(&self, look: u32, bytes: u64) {
        let less = |word: u64| Some(of(look) | pages(word, look).saturating_sub(bytes.div_ceil(PAGE)));
        _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let share = Share::new();
        let budget = 10 * PAGE + 1;
        assert!(share.take(7, budget, 4 * PAGE) && share.take(7, budget, 6 * PAGE - 1));
        assert_eq!(share.taken(7), 10 * PAGE);
        assert!(!share.take(7, budget, 1) && !share.take(7, 3 * PAGE, 1));
        share.give(7, 2 * PAGE);
        assert!(share.take(7, budget, PAGE));
        assert_eq!(share.taken(7), 9 * PAGE);
    }

    #[test]
    fn each_look_begins_anew() {
        let share = Share::new();
        assert!(share.take(0, PAGE, PAGE) && !share.take(0, PAGE, PAGE));
        assert_eq!(share.taken(1), 0);
        assert!(share.take(1, PAGE, PAGE));
        share.give(2, PAGE);
        assert_eq!((share.taken(1), share.taken(2)), (0, 0), "nothing is given back that was not taken");
        assert!(!share.take(2, u64::MAX, u64::MAX), "more than a word can count");
    }
}
