//! Which stacks the trace has already: a set of their ids, for all threads, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::mapped::Mapped;

/// Places for ids; a power of two. Pages of them that are not used take no memory. PyTorch registers its kernels from 44,000
/// places, each of which is a stack.
const PLACES: usize = 1 << 18;
/// So many places are looked at for one id.
const REACH: usize = 64;

/// A set of ids, none of which is 0.
pub(crate) struct Known {
    places: Mapped<AtomicU64, PLACES>,
}

/// Whether an id found a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is there, perhaps by another thread.
    Yes,
    /// All places for it are taken.
    Full,
}

impl Known {
    pub const fn new() -> Self {
        Self { places: Mapped::new() }
    }

    /// The places for an id.
    fn of(places: &[AtomicU64], id: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = (id >> 40) as usize;
        (first..first + REACH).filter_map(|place| places.get(place % PLACES))
    }

    /// Returns whether an id is in it.
    pub fn has(&self, id: u64) -> bool {
        // Places are filled in this order and never emptied: behind a free one there is none. Nothing else is read
        // because of what is found, so no ordering is needed.
        let mut taken = Self::of(self.places.all(), id)
            .map(|place| place.load(Ordering::Relaxed))
            .take_while(|there| *there != 0);
        taken.any(|there| there == id)
    }

    /// Adds an id. Without memory there is no place for any.
    pub fn add(&self, id: u64) -> Added {
        for place in Self::of(self.places.or_map(), id) {
            match place.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Added::Yes,
                Err(there) if there == id => return Added::Yes,
                Err(_) => {}
            }
        }
        Added::Full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_was_added_until_it_is_full() {
        static KNOWN: Known = Known::new();
        let id = |n: u64| 3 << 40 | n;
        for n in 1..=REACH as u64 {
            assert!(!KNOWN.has(id(n)));
            assert_eq!(KNOWN.add(id(n)), Added::Yes);
            assert_eq!(KNOWN.add(id(n)), Added::Yes);
            assert!(KNOWN.has(id(n)));
        }
        assert_eq!(KNOWN.add(id(1000)), Added::Full);
        assert!(!KNOWN.has(id(1000)));
        let last = u64::MAX - 5;
        assert_eq!(KNOWN.add(last), Added::Yes, "the last place, and what follows it");
        assert!(KNOWN.has(last));
    }
}
