//! Addresses that have been looked at, each in an age: a cache that forgets, without locks.
//!
//! An age ends when a library is opened or closed (`watch::age`, `watch::moves`), and with it what was found
//! out about addresses in libraries. It comes again after 65536 others.
//!
//! `tests/loom_opening.rs` explores the interleavings.

use std::ffi::c_void;

use crate::primitive::{AtomicU64, Ordering};

/// A cache of `SETS` times eight addresses.
pub(super) struct Seen<const SETS: usize>([Set; SETS]);

/// One cache line.
#[repr(align(64))]
struct Set([AtomicU64; 8]);

/// Addresses have no use for their upper bits.
fn word(address: *const c_void, age: u64) -> u64 {
    address as u64 ^ age << 48
}

impl<const SETS: usize> Seen<SETS> {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Seen([const { Set([const { AtomicU64::new(0) }; 8]) }; SETS])
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Seen(std::array::from_fn(|_| Set(std::array::from_fn(|_| AtomicU64::new(0)))))
    }

    fn set(&self, address: *const c_void) -> Option<&Set> {
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.0.get(hash as usize % SETS)
    }

    /// Whether this address was added in this age, and is not forgotten. Never NULL.
    pub(super) fn holds(&self, address: *const c_void, age: u64) -> bool {
        let word = word(address, age);
        // Pairs with the Release store in `add`.
        !address.is_null()
            && self.set(address).is_some_and(|set| set.0.iter().any(|w| w.load(Ordering::Acquire) == word))
    }

    /// Adds an address, in the place of one of another age if there is one.
    pub(super) fn add(&self, address: *const c_void, age: u64) {
        let Some(set) = self.set(address) else { return };
        let word = word(address, age);
        let is_old = |w: &&AtomicU64| {
            let there = w.load(Ordering::Relaxed);
            there == 0 || (there ^ word) >> 48 != 0
        };
        let chance = address as usize >> 2;
        let place = set.0.iter().find(is_old).or_else(|| set.0.get(chance % set.0.len()));
        if let Some(place) = place {
            // Pairs with the Acquire load in `holds`: whoever finds it finds what was done for the address before.
            place.store(word, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_held_for_one_age() {
        let seen = Seen::<4>::new();
        let (one, other) = (0x7f00_0010_0000 as *const c_void, 0x7f00_0020_0000 as *const c_void);
        assert!(!seen.holds(one, 3));
        seen.add(one, 3);
        assert!(seen.holds(one, 3) && !seen.holds(one, 4) && !seen.holds(other, 3));
        seen.add(one, 4);
        assert!(seen.holds(one, 4) && !seen.holds(other, 4));
        assert!(!seen.holds(std::ptr::null(), 0), "an empty place is no address");
    }

    #[test]
    fn what_was_added_last_is_held_though_there_is_no_room() {
        let seen = Seen::<4>::new();
        for i in 1..1000usize {
            let address = (0x7f00_0010_0000 + 4 * i) as *const c_void;
            seen.add(address, 5);
            assert!(seen.holds(address, 5));
        }
    }
}
