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
    /// A bit for each bucket that has a lane, and for some that have none any more.
    used: Link,
    /// The bucket to begin with: of queues in order, and of those without.
    begin: [Link; 2],
}

/// Where a lane hangs: the number of its first command stands there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'l>(&'l Link);

impl Lanes {
    /// Puts a command behind the others of its queue.
    ///
    /// # Safety
    /// The caller collects; `node` has this number, was taken out of the inbox and has a command.
    pub(super) unsafe fn add<T: Copy>(&self, nodes: &Nodes<T>, number: u32, node: &Node<T>) {
        // SAFETY: contract: the node has a command, and the caller collects.
        let (queue, in_order) = unsafe { key(node) };
        node.next.set(0);
        let place = match self.find(nodes, queue, in_order) {
            Ok(first) => {
                if let Some(last) = nodes.get(first.last.get()) {
                    last.next.set(number);
                }
                return first.last.set(number);
            }
            Err(place) => place,
        };
        node.last.set(number);
        node.other.set(0);
        node.resume.set(0);
        place.set(number);
        self.used.set(self.used.get() | 1 << bucket(queue));
    }

    /// Returns whether a queue in order has no command here. Only who collects may ask.
    #[inline]
    pub(super) fn has_none<T: Copy>(&self, nodes: &Nodes<T>, queue: u64) -> bool {
        self.bucket(queue).get() == 0 || self.find(nodes, queue, true).is_err()
    }

    /// Returns the first command of a lane, or where a new one is to hang.
    fn find<'l, T: Copy>(
        &'l self,
        nodes: &'l Nodes<T>,
        queue: u64,
        in_order: bool,
    ) -> Result<&'l Node<T>, &'l Link> {
        let mut place = self.bucket(queue);
        while let Some(first) = nodes.get(place.get()) {
            // SAFETY: `add` put it here, so it has a command; only who collects calls this.
            if unsafe { key(first) } == (queue, in_order) {
                return Ok(first);
            }
            place = &first.other;
        }
        Err(place)
    }

    fn bucket(&self, queue: u64) -> &Link {
        self.buckets.get(bucket(queue)).unwrap_or(&self.buckets[0])
    }

    /// The buckets that have lanes, beginning where [`Lanes::stop_at`] stopped.
    pub(super) fn places(&self, in_order: bool) -> impl Iterator<Item = (u32, Place<'_>)> {
        let [unordered, ordered] = &self.begin;
        let begin = if in_order { ordered } else { unordered }.get();
        let mut left = self.used.get().rotate_right(begin);
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            let number = begin.wrapping_add(bit) % BUCKETS as u32;
            let bucket = self.buckets.get(number as usize).filter(|_| bit < BUCKETS as u32)?;
            Some((number, Place(bucket)))
        })
    }

    /// The next look begins at this bucket.
    pub(super) fn stop_at(&self, in_order: bool, bucket: u32) {
        let [unordered, ordered] = &self.begin;
        if in_order { ordered } else { unordered }.set(bucket);
    }

    /// A bucket has no lane any more.
    pub(super) fn is_unused(&self, bucket: u32) {
        self.used.set(self.used.get() & !(1 << bucket));
    }
}

/// The number of a queue's bucket.
fn bucket(queue: u64) -> usize {
    (queue.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize
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
    pub(super) fn remove<T: Copy>(self, nodes: &'l Nodes<T>, before: Option<u32>) {
        let Some((number, first)) = self.first(nodes) else { return };
        let Some(before) = before.and_then(|b| Some((b, nodes.get(b)?))) else {
            self.remove_first(nodes, number, first);
            return;
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

    /// Takes the first command out of the lane, and returns the one behind it.
    pub(super) fn remove_first<T: Copy>(
        self,
        nodes: &'l Nodes<T>,
        number: u32,
        first: &Node<T>,
    ) -> Option<(u32, &'l Node<T>)> {
        let after = first.next.get();
        let Some(next) = nodes.get(after) else {
            self.0.set(first.other.get());
            return None;
        };
        next.last.set(first.last.get());
        next.other.set(first.other.get());
        let resume = first.resume.get();
        next.resume.set(if resume == number { 0 } else { resume });
        self.0.set(after);
        Some((after, next))
    }
}
