//! The places that commands in flight are kept in: made as they are needed, up to a bound.
//!
//! ```text
//!   chunk 0: │ node 1 │ … │ node 1024 │    chunk 1: │ node 1025 │ …
//! ```
//!
//! An owner takes nodes in batches and keeps a few; what its commands do not need any more goes
//! back to it, and beyond that to all. Chunks stay for ever, so a number always names memory.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::links::{Link, Spares};
use super::{Enqueued, MOST};
use crate::mapped::{map_once, own_pages};

/// Nodes that are mapped together.
const CHUNK: usize = 1024;
const CHUNKS: usize = MOST as usize / CHUNK;
/// Nodes that an owner gets at a time.
pub(super) const BATCH: u32 = 64;

/// A command in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending<T> {
    pub(super) token: T,
    pub(super) command: Enqueued,
}

/// The place of a command. All zeros are a valid one without a command.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Node<T> {
    /// For [`super::links::Inbox`].
    pub(super) arrival: Link,
    /// The next one of its lane, or of a chain of free ones.
    pub(super) next: Link,
    /// For [`Spares`], and what the first command of a lane knows of it: see [`super::lanes`].
    pub(super) other: Link,
    pub(super) last: Link,
    pub(super) resume: Link,
    pending: UnsafeCell<MaybeUninit<Pending<T>>>,
}

// SAFETY: links are atomics. The command is written by the thread that has the node alone, and
// read by the collector to which `Inbox` has handed it, until that gives the node away.
unsafe impl<T: Send> Sync for Node<T> {}

impl<T: Copy> Node<T> {
    /// Writes the command.
    ///
    /// # Safety
    /// The node is the caller's alone.
    #[inline(always)]
    pub(super) unsafe fn write(&self, pending: Pending<T>) {
        // SAFETY: nobody else reads or writes it, by the contract.
        unsafe { (*self.pending.get()).write(pending) };
    }

    /// Returns the command.
    ///
    /// # Safety
    /// One was written, and the caller is the collector that has the node.
    #[inline(always)]
    pub(super) unsafe fn read(&self) -> &Pending<T> {
        // SAFETY: written before the node was handed over, by the contract; nobody writes it now.
        unsafe { (*self.pending.get()).assume_init_ref() }
    }
}

/// All nodes of a process.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Nodes<T> {
    spares: Spares,
    /// Nodes that were ever handed out.
    made: AtomicU32,
    chunks: [AtomicPtr<Node<T>>; CHUNKS],
}

impl<T: Copy> Nodes<T> {
    /// The node of this number, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&Node<T>> {
        let at = number.wrapping_sub(1) as usize;
        // Pairs with the Release exchange in `chunk`.
        let chunk = self.chunks.get(at / CHUNK)?.load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: a chunk has this many nodes, is never unmapped, and all its bytes are valid.
        Some(unsafe { &*chunk.add(at % CHUNK) })
    }

    /// Returns the first of a chain of nodes that now are the caller's alone; 0 if `limit` nodes
    /// were made, or there is no memory.
    #[cold]
    pub(super) fn take(&self, limit: u32) -> u32 {
        let spare = self.spares.take(|n| self.get(n).map(|n| &n.other));
        if spare != 0 { spare } else { self.make(limit.min(MOST)) }
    }

    fn make(&self, limit: u32) -> u32 {
        let mut made = self.made.load(Ordering::Relaxed);
        let count = loop {
            // Not across the end of a chunk.
            let left = (limit.saturating_sub(made)).min(CHUNK as u32 - made % CHUNK as u32).min(BATCH);
            if left == 0 || !self.chunk(made as usize / CHUNK) {
                return 0;
            }
            let (relaxed, next) = (Ordering::Relaxed, made + left);
            match self.made.compare_exchange(made, next, relaxed, relaxed) {
                Ok(_) => break left,
                Err(now) => made = now,
            }
        };
        // Numbers begin with 1, and a chain ends with 0.
        for number in made + 1..made + count {
            if let Some(node) = self.get(number) {
                node.next.set(number + 1);
            }
        }
        made + 1
    }

    /// Maps a chunk unless it is mapped. Returns whether it is there.
    fn chunk(&self, number: usize) -> bool {
        self.chunks.get(number).is_some_and(|place| map_once(place, CHUNK * size_of::<Node<T>>(), own_pages))
    }

    /// Gives a chain of nodes to whoever needs some.
    pub(super) fn give(&self, first: u32) {
        if let Some(node) = self.get(first) {
            self.spares.give(first, &node.other);
        }
    }

    /// Whether as many were made as there may be.
    pub(super) fn are_all(&self, limit: u32) -> bool {
        self.made.load(Ordering::Relaxed) >= limit.min(MOST)
    }

    /// Nodes that there are.
    #[cfg(test)]
    pub(super) fn made(&self) -> u32 {
        self.made.load(Ordering::Relaxed)
    }
}
