//! Whose something is that goes around: from who claims it to who takes it up when it is filled, and back.
//!
//! ```text
//!         claim           fill             take_up
//!   FREE ───────► BUSY ─────────► FILLED ──────────► BUSY ──► fill, or free
//! ```
//! * The word has the state and the process. What a forked child finds of its parent's is free, also what a thread of the
//!   parent was at that the child does not have.
//! * Whoever has changed the word to BUSY has alone what it stands for, until it changes it again. Others pass over it
//!   meanwhile, a handler in the same thread too, so nobody waits. What a handler that leaves by `siglongjmp` was at stays
//!   busy.
//!
//! `tests/loom_commands.rs` explores the interleavings, by [`Waiting`](super::waiting::Waiting).

use super::primitive::{AtomicU64, Ordering};

const FREE: u64 = 0;
const BUSY: u64 = 1;
const FILLED: u64 = 2;

/// The state.
#[derive(Debug)]
pub struct Slot(AtomicU64);

/// The word of what is this process's.
fn of(pid: u32, state: u64) -> u64 {
    u64::from(pid) << 32 | state
}

impl Slot {
    /// Free.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Slot(AtomicU64::new(FREE))
    }

    /// Free.
    #[cfg(loom)]
    pub fn new() -> Self {
        Slot(AtomicU64::new(FREE))
    }

    /// Claims what is free, or another process's. Returns whether it is the caller's now.
    pub fn claim(&self, pid: u32) -> bool {
        let there = self.0.load(Ordering::Relaxed);
        // Pairs with the Release store in `free`: who had it is done with it.
        (there == FREE || there >> 32 != u64::from(pid)) && self.becomes_busy(there, pid)
    }

    /// Who has it has filled it, or has not done what is to be done with it.
    pub fn fill(&self, pid: u32) {
        // Pairs with the Acquire exchange in `take_up`: what was written is whole.
        self.0.store(of(pid, FILLED), Ordering::Release);
    }

    /// Takes up what is filled. Returns whether it is the caller's now.
    pub fn take_up(&self, pid: u32) -> bool {
        let filled = of(pid, FILLED);
        // Pairs with the Release store in `fill`.
        self.0.load(Ordering::Relaxed) == filled && self.becomes_busy(filled, pid)
    }

    /// Who has it does not use it any more.
    pub fn free(&self) {
        // Pairs with the Acquire exchange in `claim`.
        self.0.store(FREE, Ordering::Release);
    }

    fn becomes_busy(&self, from: u64, pid: u32) -> bool {
        self.0.compare_exchange(from, of(pid, BUSY), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_has_one_owner_at_a_time() {
        let slot = Slot::new();
        assert!(!slot.take_up(7) && slot.claim(7) && !slot.claim(7) && !slot.take_up(7));
        slot.fill(7);
        assert!(!slot.claim(7) && slot.take_up(7) && !slot.take_up(7) && !slot.claim(7));
        slot.free();
        assert!(!slot.take_up(7) && slot.claim(7));
    }

    #[test]
    fn what_is_a_parents_is_free() {
        let slot = Slot::new();
        assert!(slot.claim(7) && slot.claim(8) && !slot.claim(8));
        slot.fill(8);
        assert!(!slot.take_up(9) && slot.claim(9));
    }
}
