//! Whose a ring is: its state word, and the only code that touches it.
//!
//! ```text
//!              claim                begin             end
//!   FREE ───────────────► CLAIMED ───────► ACTIVE ──────────► ENDED ──┐ claim: another thread's
//!    ▲                                       │                 ▲──────┘ records follow
//!    └───────────── free (drainer) ◄─ MOVED ◄┘ leave: it goes on in a larger ring
//! ```
//! * Whoever ends, leaves or frees stores with *Release*; it pairs with the *Acquire* exchange of
//!   the next thread, which so finds the positions as they were left, and bytes that nobody uses.
//! * A ring that was left is final: the drainer that finds MOVED (*Acquire*) finds the last `head`.
//!
//! `tests/loom.rs` explores the interleavings.

use crate::cursor::{Head, Tail};
use crate::primitive::{AtomicU32, Ordering};

/// State of a ring.
pub mod state {
    /// Nobody's: a thread of the same process and API may claim it.
    pub const FREE: u32 = 0;
    /// A thread records into it.
    pub const ACTIVE: u32 = 1;
    /// Its thread ended: another may claim it, and records behind what is not drained yet.
    pub const ENDED: u32 = 2;
    /// A thread is claiming it.
    pub const CLAIMED: u32 = 3;
    /// Its thread went on in a larger ring, where a [`ThreadRecord`](crate::abi::ThreadRecord) names this one;
    /// the drainer will free it when it is empty.
    pub const MOVED: u32 = 4;
}

/// The word; its values are in [`state`].
#[repr(transparent)]
#[derive(Debug)]
pub struct State(AtomicU32);

impl State {
    /// Nobody's. (In shared memory, zeroed pages are the same.)
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        State(AtomicU32::new(state::FREE))
    }

    /// The value at some moment: nothing may be concluded for what else stands in the ring.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// A new ring, which only its maker knows, is the maker's.
    pub fn make(&self) {
        // The directory's entry hands it on, if need be.
        self.0.store(state::CLAIMED, Ordering::Relaxed);
    }

    /// Thread: takes a ring that nobody uses and of whose `size` data bytes no more than half
    /// wait to be drained. Returns whether it did.
    pub fn claim(&self, head: &Head, tail: &Tail, size: u64) -> bool {
        let has_room = || head.own().wrapping_sub(tail.released()) <= size / 2;
        let now = self.get();
        if !matches!(now, state::FREE | state::ENDED) || !has_room() {
            return false;
        }
        // Pairs with the Release stores of `end` and `free`.
        if self.0.compare_exchange(now, state::CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        // Between the two looks another thread may have had it, filled it, and ended.
        if !has_room() {
            self.0.store(now, Ordering::Release);
            return false;
        }
        true
    }

    /// Thread: it records into the ring that it claimed.
    pub fn begin(&self) {
        self.0.store(state::ACTIVE, Ordering::Release);
    }

    /// Thread: it has ended, and another may have the ring.
    pub fn end(&self) {
        // Pairs with the Acquire exchange in `claim`: all records are there.
        self.0.store(state::ENDED, Ordering::Release);
    }

    /// Thread: it goes on elsewhere, and has published all that it recorded here.
    pub fn leave(&self) {
        // Pairs with the Acquire load in `is_left`.
        self.0.store(state::MOVED, Ordering::Release);
    }

    /// Drainer: whether the thread went on elsewhere. Then `head` moves no more.
    pub fn is_left(&self) -> bool {
        // Pairs with the Release store in `leave`: the head is final.
        self.0.load(Ordering::Acquire) == state::MOVED
    }

    /// Drainer, of a ring that was left and is empty; maker, of a ring for another thread: it is
    /// nobody's.
    pub fn free(&self) {
        // Pairs with the Acquire exchange in `claim`.
        self.0.store(state::FREE, Ordering::Release);
    }
}
