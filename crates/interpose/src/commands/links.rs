//! How nodes go from one thread to another, and the only code that touches the links.
//!
//! Nodes are named by a number; 0 is none. Whoever has a node alone writes it; what stands here
//! hands it over, without a lock and without waiting:
//!
//! ```text
//!   owner ── Inbox::put ──► collector ── Returned::give ──► owner
//!                               └─────── Spares::give ────► any owner
//! ```
//!
//! * One thread puts into an [`Inbox`], one at a time takes out of it (who holds the [`Claim`]).
//!   A node's link is written by the owner even after the collector has the node: the link of the
//!   node that came last leads to the next one. So that node is kept until another has come.
//! * [`Returned`] is emptied at once: no node can come again in between.
//! * [`Spares`] are batches that any thread takes, one at a time: a number that goes up with each
//!   change distinguishes an old first batch from the same one that came again.
//!
//! `tests/loom.rs` explores every interleaving of this with loom.

use std::sync::atomic::AtomicPtr;

use super::primitive::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The number of another node; 0 if there is none.
#[repr(transparent)]
#[derive(Debug)]
pub struct Link(AtomicU32);

impl Link {
    /// No node. (Zeroed memory is the same.)
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Link(AtomicU32::new(0))
    }

    /// The node, for whoever has the node alone in which this stands.
    #[inline(always)]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes it, for whoever has the node alone in which this stands.
    #[inline(always)]
    pub fn set(&self, node: u32) {
        self.0.store(node, Ordering::Relaxed);
    }
}

/// Nodes on their way from one owner to a collector, in order.
#[repr(C)]
#[derive(Debug)]
pub struct Inbox {
    /// Owner: the link of the node that was put last; null if there was none. Only it looks there.
    last: AtomicPtr<Link>,
    /// Leads to the first node that there ever was.
    root: Link,
    /// Collector: the node that was taken last.
    taken: Link,
}

impl Inbox {
    /// An empty one. (Zeroed memory is the same.)
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Inbox { last: AtomicPtr::new(std::ptr::null_mut()), root: Link::new(), taken: Link::new() }
    }

    /// Owner: puts a node, and all that was written into it.
    ///
    /// # Safety
    /// `own` is the node's link, and stays as long as the inbox is used.
    #[inline(always)]
    pub unsafe fn put(&self, node: u32, own: &Link) {
        own.set(0);
        let last = self.last.load(Ordering::Relaxed);
        // SAFETY: null, or a link that was given here before and stays, by the contract.
        let before = unsafe { last.as_ref() }.unwrap_or(&self.root);
        self.last.store(std::ptr::from_ref(own).cast_mut(), Ordering::Relaxed);
        // Pairs with the Acquire load in `take`.
        before.0.store(node, Ordering::Release);
    }

    /// Collector: takes the next node. Until it takes another, it must not give this one away.
    #[inline]
    pub fn take<'l>(&'l self, link: impl Fn(u32) -> Option<&'l Link>) -> Option<u32> {
        let taken = self.taken.get();
        let from = if taken == 0 { &self.root } else { link(taken)? };
        // Pairs with the Release store in `put`.
        let node = from.0.load(Ordering::Acquire);
        if node == 0 {
            return None;
        }
        self.taken.set(node);
        Some(node)
    }

    /// Collector: the node that was taken last, which it must keep.
    #[inline]
    pub fn kept(&self) -> u32 {
        self.taken.get()
    }
}

/// A chain of nodes on their way back to their owner.
#[repr(transparent)]
#[derive(Debug)]
pub struct Returned(AtomicU32);

impl Returned {
    /// An empty one. (Zeroed memory is the same.)
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Returned(AtomicU32::new(0))
    }

    /// Gives a chain from `first` to a node with the link `last`.
    #[inline]
    pub fn give(&self, first: u32, last: &Link) {
        let mut there = self.0.load(Ordering::Relaxed);
        loop {
            last.set(there);
            // Pairs with the Acquire exchange in `take`.
            match self.0.compare_exchange(there, first, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => there = now,
            }
        }
    }

    /// Takes all: the first of a chain, or 0.
    #[inline]
    pub fn take(&self) -> u32 {
        // Pairs with the Release exchange in `give`.
        if self.0.load(Ordering::Relaxed) == 0 { 0 } else { self.0.swap(0, Ordering::Acquire) }
    }
}

/// Batches of nodes that no owner has. Each is named by its first node.
#[repr(transparent)]
#[derive(Debug)]
pub struct Spares(AtomicU64);

const NODE: u64 = u32::MAX as u64;
/// Added with each change.
const AGE: u64 = 1 << 32;

impl Spares {
    /// None. (Zeroed memory is the same.)
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Spares(AtomicU64::new(0))
    }

    /// None. (Zeroed memory is the same.)
    #[cfg(loom)]
    pub fn new() -> Self {
        Spares(AtomicU64::new(0))
    }

    /// Gives a batch; `next` is the link to the next batch in its first node.
    pub fn give(&self, batch: u32, next: &Link) {
        let mut there = self.0.load(Ordering::Relaxed);
        loop {
            next.set((there & NODE) as u32);
            let now = (there & !NODE).wrapping_add(AGE) | u64::from(batch);
            // Pairs with the Acquire accesses in `take`.
            match self.0.compare_exchange(there, now, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => there = other,
            }
        }
    }

    /// Takes a batch, or 0. `next` finds the link to the next batch in a node.
    pub fn take<'l>(&self, next: impl Fn(u32) -> Option<&'l Link>) -> u32 {
        // Pairs with the Release exchange in `give`.
        let mut there = self.0.load(Ordering::Acquire);
        loop {
            let batch = (there & NODE) as u32;
            let Some(link) = next(batch).filter(|_| batch != 0) else { return 0 };
            // If another thread has it by now, this is some number, and the exchange fails.
            let now = (there & !NODE).wrapping_add(AGE) | u64::from(link.get());
            match self.0.compare_exchange(there, now, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return batch,
                Err(other) => there = other,
            }
        }
    }
}

/// Who may do something, such as collect: one at a time. It is only ever tried.
#[repr(transparent)]
#[derive(Debug)]
pub struct Claim(AtomicBool);

impl Claim {
    /// Nobody's. (Zeroed memory is the same.)
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Claim(AtomicBool::new(false))
    }

    /// Nobody's. (Zeroed memory is the same.)
    #[cfg(loom)]
    pub fn new() -> Self {
        Claim(AtomicBool::new(false))
    }

    /// Runs `work` unless somebody else is at it; then returns `None`.
    #[inline]
    pub fn holding<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        // Pairs with the Release store below: all that the last holder did is seen.
        self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let result = work();
        self.0.store(false, Ordering::Release);
        Some(result)
    }
}
