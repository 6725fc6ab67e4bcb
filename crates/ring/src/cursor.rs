//! The two positions of a ring, and the only code that touches them.
//!
//! Both count bytes since the ring was made and never wrap (2⁶⁴ bytes are
//! centuries). The producer owns `head`, the consumer owns `tail`:
//!
//! ```text
//!        tail                head            tail + size
//!  ───────┼───── published ───┼───── free ───────┼───────
//!         consumer reads here   producer writes here
//! ```
//!
//! * The producer writes bytes, then stores `head` with *Release*; it pairs
//!   with the consumer's *Acquire* load, so published bytes are complete.
//! * The consumer copies bytes out, then stores `tail` with *Release*; it
//!   pairs with the producer's *Acquire* load, so bytes are overwritten only
//!   after they were copied.
//!
//! `tests/loom.rs` explores every interleaving of this with loom.

use crate::primitive::{AtomicU64, Ordering};

/// The producer's published position, alone on its cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Head(AtomicU64);

/// The consumer's position, alone on its cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Tail(AtomicU64);

impl Head {
    /// A position of 0. (In shared memory, zeroed pages are the same.)
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Head(AtomicU64::new(0))
    }

    /// Producer: hand everything before `position` to the consumer.
    #[inline(always)]
    pub fn publish(&self, position: u64) {
        // Pairs with the Acquire load in `Head::published`.
        self.0.store(position, Ordering::Release);
    }

    /// Producer: where it left off. Only the owner may rely on it.
    #[inline]
    pub fn own(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Consumer: how far bytes may be read.
    #[inline]
    pub fn published(&self) -> u64 {
        // Pairs with the Release store in `Head::publish`.
        self.0.load(Ordering::Acquire)
    }
}

impl Tail {
    /// A position of 0.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Tail(AtomicU64::new(0))
    }

    /// Consumer: bytes before `position` were copied and may be overwritten.
    #[inline]
    pub fn release(&self, position: u64) {
        // Pairs with the Acquire load in `Tail::released`.
        self.0.store(position, Ordering::Release);
    }

    /// Consumer: where it left off. Only the owner may rely on it.
    #[inline]
    pub fn own(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Producer: everything before this position is free.
    #[inline]
    pub fn released(&self) -> u64 {
        // Pairs with the Release store in `Tail::release`.
        self.0.load(Ordering::Acquire)
    }
}
