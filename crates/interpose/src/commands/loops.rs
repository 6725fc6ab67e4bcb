//! Whether a thread waits for a device over and over: then finished commands are not looked for at each wait.
//!
//! Looking takes a microsecond or two of the program's own time between two waits. Where an iteration is as short as
//! that, and a driver's thread runs on the same processor, a scheduler that has let that thread wait until the program
//! waits lets it interrupt the program instead, which takes several times what looking takes. A look at one wait in
//! sixteen takes this from fifteen iterations of sixteen.
//!
//! ```text
//!   waits        │ │ │ │ … │ │ │ │ │ │ │ │ │      │
//!   in a row     1 2 3 4 … ROW                    0   (a pause)
//!   looks        │ │ │ │ … │       │       │      │
//! ```
//!
//! What it costs: of a program that is killed within such a loop, the times of at most the last [`PUT_OFF`] ticks, or
//! of as many commands as a thread may have before it looks anyway, are not known. Reports have these as in flight.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Waits, each soon after the one before, from which on a thread is in a loop. Programs of a few calls never are.
const ROW: u32 = 64;
/// What soon is, in ticks: a tenth of a millisecond.
const SOON: u64 = 1 << 18;
/// For how many ticks looking is put off at the most: some half a millisecond.
pub(super) const PUT_OFF: u64 = 1 << 20;

/// A thread's waits for devices. All zeros are a thread that did not wait yet.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// When it waited last, in ticks.
    waited: AtomicU64,
    /// How many waits came soon after the one before, one behind the other.
    row: AtomicU32,
}

impl Loops {
    /// Owner: it has waited, and that was over at `now`. Returns whether it is in a loop.
    #[inline]
    pub(super) fn waits(&self, now: u64) -> bool {
        let before = self.waited.load(Ordering::Relaxed);
        self.waited.store(now, Ordering::Relaxed);
        let soon = now.wrapping_sub(before) < SOON;
        let row = if soon { self.row.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.row.store(row, Ordering::Relaxed);
        row >= ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_begins_after_some_waits_and_ends_with_a_pause() {
        let loops = Loops::default();
        let mut now = 1 << 40;
        let mut waits = |after: u64| {
            now += after;
            loops.waits(now)
        };
        assert!(!waits(0));
        assert_eq!((0..ROW + 10).filter(|_| waits(SOON - 1)).count(), 11);
        assert!(!waits(SOON));
        assert!((1..ROW).all(|_| !waits(1)));
        assert!(waits(1));
    }
}
