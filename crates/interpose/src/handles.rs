//! A set of handles that is looked into by each call: without a lock, and of a fixed size.
//!
//! A handle stands in one of a few places that its value chooses; where these are taken it is not in the set. So the set
//! must be of what allows something: of a handle that is not in it nothing is known.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Places that the value of a handle chooses: a line of the processor's cache.
const NEAR: usize = 8;
/// Such lines in a set.
const LINES: usize = 128;

/// Places of one line.
#[derive(Debug)]
#[repr(align(64))]
struct Line([AtomicUsize; NEAR]);

/// The set; 0 where there is no handle.
#[derive(Debug)]
pub struct Handles([Line; LINES]);

impl Handles {
    /// An empty one.
    #[allow(clippy::new_without_default, reason = "a constant")]
    pub const fn new() -> Handles {
        Handles([const { Line([const { AtomicUsize::new(0) }; NEAR]) }; LINES])
    }

    #[inline(always)]
    fn places(&self, handle: usize) -> &[AtomicUsize; NEAR] {
        // Handles are addresses of memory that was allocated: what is low says nothing.
        let hash = (handle >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.0[hash % LINES].0
    }

    /// Puts a handle in, if there is a place for it.
    pub fn insert(&self, handle: usize) {
        if handle == 0 || self.contains(handle) {
            return;
        }
        for place in self.places(handle) {
            if place.compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Takes a handle out.
    pub fn remove(&self, handle: usize) {
        if handle == 0 {
            return;
        }
        for place in self.places(handle) {
            // All of them: two threads may have put it in at once.
            let _ = place.compare_exchange(handle, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Whether a handle is in the set.
    #[inline(always)]
    pub fn contains(&self, handle: usize) -> bool {
        // Pairs with the AcqRel of `insert` and `remove`.
        handle != 0 && self.places(handle).iter().any(|place| place.load(Ordering::Acquire) == handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_in_until_they_are_taken_out() {
        static SET: Handles = Handles::new();
        let all = (1..200).map(|n| n * 0x140);
        all.clone().for_each(|handle| SET.insert(handle));
        let there = all.clone().filter(|handle| SET.contains(*handle)).count();
        assert!(there > 150, "{there} of 199");
        assert!(!SET.contains(0) && !SET.contains(0x40));
        all.clone().for_each(|handle| SET.remove(handle));
        assert!(!all.clone().any(|handle| SET.contains(handle)));
    }

    #[test]
    fn more_than_there_are_places_for_are_not_known() {
        let set = Handles::new();
        let (first, many) = (0x1000, 20_000);
        (0..many).for_each(|n| set.insert(first + n * 16));
        let there = (0..many).filter(|n| set.contains(first + n * 16)).count();
        assert_eq!(there, NEAR * LINES, "each place has one");
    }
}
