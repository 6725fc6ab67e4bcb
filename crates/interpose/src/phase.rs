//! How far a process has come with its arena, and who makes it.
//!
//! ```text
//!           begin               finish(true)
//!   Empty ─────────► Starting ───────────────► Ready
//!                       └─ finish(false), give_up ─► Failed
//! ```
//! * One thread makes it. Who that is stands in the same word: a handler that interrupts the maker at any instruction
//!   finds that it must not wait.
//! * `finish` is an exchange with *Release*, which pairs with the *Acquire* load in `get`: who finds it ready finds all of it.
//! * A maker that others have given up may finish nevertheless; then that counts.
//!
//! `tests/loom_process.rs` explores the interleavings.

use crate::primitive::{AtomicU64, Ordering};

/// The word. Zeroed memory is [`Stage::Empty`].
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Phase(AtomicU64);

/// What the word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is no arena: nothing was recorded yet, or the process was forked.
    Empty,
    /// This thread is making one.
    Starting(u64),
    /// There is one.
    Ready,
    /// It could not be made.
    Failed,
}

/// In the low bits; a thread is an address, in which these are 0.
const STARTING: u64 = 1;
const READY: u64 = 2;
const FAILED: u64 = 3;

impl Phase {
    /// [`Stage::Empty`].
    #[cfg(any(test, loom))]
    pub(crate) fn new() -> Self {
        Phase(AtomicU64::new(0))
    }

    pub(crate) fn get(&self) -> Stage {
        // Pairs with the Release exchange in `finish`: the arena is complete.
        match self.0.load(Ordering::Acquire) {
            0 => Stage::Empty,
            READY => Stage::Ready,
            FAILED => Stage::Failed,
            word => Stage::Starting(word & !FAILED),
        }
    }

    /// Returns whether this thread is the one that makes the arena.
    pub(crate) fn begin(&self, thread: u64) -> bool {
        let starting = thread & !FAILED | STARTING;
        self.0.compare_exchange(0, starting, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The maker: it is there, or can't be made.
    pub(crate) fn finish(&self, made: bool) {
        // Pairs with the Acquire load in `get`. An exchange, as in `give_up`: whichever comes last counts.
        self.0.swap(if made { READY } else { FAILED }, Ordering::Release);
    }

    /// The maker is waited for no more: a handler has left it by `siglongjmp`, say.
    pub(crate) fn give_up(&self, maker: u64) {
        let starting = maker & !FAILED | STARTING;
        _ = self.0.compare_exchange(starting, FAILED, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ME: u64 = 0x7f00_1000;

    #[test]
    fn one_thread_makes_it() {
        let phase = Phase::new();
        assert_eq!(phase.get(), Stage::Empty);
        assert!(phase.begin(ME) && !phase.begin(ME) && !phase.begin(ME + 64));
        assert_eq!(phase.get(), Stage::Starting(ME));
        phase.finish(true);
        assert_eq!(phase.get(), Stage::Ready);
        assert!(!phase.begin(ME));
    }

    #[test]
    fn a_maker_that_was_given_up_may_finish() {
        let phase = Phase::new();
        phase.give_up(ME);
        assert_eq!(phase.get(), Stage::Empty, "nobody makes it");
        assert!(phase.begin(ME));
        phase.give_up(ME + 64);
        assert_eq!(phase.get(), Stage::Starting(ME), "it is another's");
        phase.give_up(ME);
        assert_eq!(phase.get(), Stage::Failed);
        phase.finish(true);
        assert_eq!(phase.get(), Stage::Ready);
        phase.give_up(ME);
        assert_eq!(phase.get(), Stage::Ready);
    }
}
