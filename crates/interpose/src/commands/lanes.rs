//! The commands of a block by queue.
//!
//! Those of one queue are a chain, in the order in which they were enqueued; in a queue that keeps
//! the order only the first needs to be asked about. The first knows of the chain: which is the
//! last, and the first of the next chain with the same hash.
//!
//! ```text
//!   bucket ──► command 7 (queue A) ──other──► command 9 (queue B) ──► …
//!                 │next                           │next
//!                 ▼                               ▼
//!              command 8 (queue A)             command 12 (queue B)
//! ```
//!
//! Only who collects touches anything here.

use super::links::Link;
use super::nodes::{Node, Nodes};

const BUCKETS: usize = 32;

/// What is known of the commands of a block.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Lanes {
    buckets: [Link; BUCKETS],
    /// The bucket to begin with.
    pub(super) begin: Link,
}

/// Where a lane hangs: the number of its first command stands there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'l>(&'l Link);

impl Lanes {
    /// Puts a command behind the others of its queue.
    ///
    /// # Safety
    /// The caller collects, and the node was taken out of the inbox and has a command.
    pub(super) unsafe fn add<T: Copy>(&self, nodes: &Nodes<T>, number: u32) {
        let Some(node) = nodes.get(number) else { return };
        // SAFETY: by the contract.
        let (queue, in_order) = unsafe { key(node) };
        node.next.set(0);
        let mut place = self.bucket(queue);
        while let Some(first) = nodes.get(place.get()) {
            // SAFETY: as the one above it was added here, so it has a command and is ours.
            if unsafe { key(first) } == (queue, in_order) {
                if let Some(last) = nodes.get(first.last.get()) {
                    last.next.set(number);
                }
                first.last.set(number);
                return;
            }
            place = &first.other;
        }
        node.last.set(number);
        node.other.set(0);
        node.resume.set(0);
        place.set(number);
    }

    fn bucket(&self, queue: u64) -> &Link {
        let hash = queue.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59;
        self.buckets.get(hash as usize).unwrap_or(&self.buckets[0])
    }

    /// The buckets, beginning where the last collector stopped.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, Place<'_>)> {
        let begin = self.begin.get();
        (0..BUCKETS as u32).filter_map(move |i| {
            let number = begin.wrapping_add(i) % BUCKETS as u32;
            self.buckets.get(number as usize).map(|b| (number, Place(b)))
        })
    }
}

/// # Safety
/// The node has a command, and the caller collects.
unsafe fn key<T: Copy>(node: &Node<T>) -> (u64, bool) {
    // SAFETY: by the contract.
    let command = unsafe { &node.read().command };
    (command.queue, command.in_order)
}

impl<'l> Place<'l> {
    /// The first command of the lane that hangs here.
    pub(super) fn first<T: Copy>(self, nodes: &'l Nodes<T>) -> Option<(u32, &'l Node<T>)> {
        let number = self.0.get();
        nodes.get(number).map(|n| (number, n))
    }

    /// Where the next lane hangs.
    pub(super) fn after<T: Copy>(self, first: &'l Node<T>) -> Place<'l> {
        Place(&first.other)
    }

    /// Takes a command out of the lane: the first, or the one behind `before`.
    pub(super) fn remove<T: Copy>(self, nodes: &Nodes<T>, before: Option<u32>) {
        let Some((number, first)) = self.first(nodes) else { return };
        let Some(before) = before.and_then(|b| Some((b, nodes.get(b)?))) else {
            return self.remove_first(nodes, number, first);
        };
        let (before_number, before) = before;
        let removed = before.next.get();
        let after = nodes.get(removed).map_or(0, |n| n.next.get());
        before.next.set(after);
        if first.last.get() == removed {
            first.last.set(before_number);
        }
        if first.resume.get() == removed {
            first.resume.set(before_number);
        }
    }

    fn remove_first<T: Copy>(self, nodes: &Nodes<T>, number: u32, first: &Node<T>) {
        let Some(next) = nodes.get(first.next.get()) else {
            self.0.set(first.other.get());
            return;
        };
        next.last.set(first.last.get());
        next.other.set(first.other.get());
        let resume = first.resume.get();
        next.resume.set(if resume == number { 0 } else { resume });
        self.0.set(first.next.get());
    }
}
