//! A word by which one thread at a time has a place that all share, and leaves it under a key for others. Nobody waits:
//! who does not get a place does without it.
//!
//! ```text
//!   FREE ── take ──► TAKEN ── leave(key) ──► key         what lies there does not change any more
//!    ▲                 │
//!    └── leave(FREE) ──┘                                 it is nothing, or for who takes it next
//! ```
//! A thread that ends in between, or whose signal handler never returns to it, leaves its place taken for ever.
//!
//! `tests/loom_native.rs` explores the interleavings.

use crate::primitive::{AtomicU64, Ordering};

/// The word of a place. Zeros: it is free.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Keyed(AtomicU64);

impl Keyed {
    /// Nobody has it.
    pub const FREE: u64 = 0;
    /// A thread has it.
    const TAKEN: u64 = 1;
    /// The least key.
    pub const FIRST: u64 = 2;

    /// One that is free.
    #[allow(dead_code, reason = "most are made of zeroed memory")]
    pub fn new() -> Self {
        Self(AtomicU64::new(Self::FREE))
    }

    /// Returns the key that the place was left under, or what is below [`Self::FIRST`].
    #[inline(always)]
    pub fn key(&self) -> u64 {
        // Pairs with the Release store in `leave`: what lies there is complete.
        self.0.load(Ordering::Acquire)
    }

    /// Takes a place that is free. Returns whether this thread has it now.
    pub fn take(&self) -> bool {
        // Pairs with the Release store in `leave`: who had it before is done with it.
        self.0.compare_exchange(Self::FREE, Self::TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Leaves a place that this thread has taken: under a key, or free.
    pub fn leave(&self, key: u64) {
        // Pairs with the Acquire load in `key` and the Acquire exchange in `take`.
        self.0.store(key, Ordering::Release);
    }
}
