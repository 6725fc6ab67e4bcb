//! A table from handle to a word or two, for what is known of an object.
//!
//! Open addressing in a fixed array: lookups take no lock, inserts take a slot
//! with one atomic exchange, nothing is allocated. When the table is full, new
//! objects are simply not known, and the caller asks the API instead.
//!
//! * A value is stored with *Release* and loaded with *Acquire*: what it stands for
//!   is complete.
//! * `remove` gives a slot up with *Release*, and `set` takes it with *Acquire*: the
//!   value of the object that comes is stored after that of the one that went, so
//!   that this never comes back.
//! * Keys are loaded *Relaxed*: a key alone says nothing. Who knows of an object from
//!   the thread that set it finds its value, whatever the order here; to all others it
//!   may look as if it were still being created. A slot that was once found taken
//!   is never found empty afterwards, for no key goes back to 0.
//!
//! `tests/loom.rs` explores the interleavings.

use crate::primitive::{AtomicU64, Ordering};

/// One object: its handle and a value.
#[derive(Debug)]
struct Slot {
    key: AtomicU64,
    value: AtomicU64,
}

/// A table of `N` slots; `N` is a power of two.
#[derive(Debug)]
pub struct Table<const N: usize> {
    slots: [Slot; N],
}

/// How far a key may stand from its place.
const REACH: usize = 64;
/// A slot whose object was removed.
const GONE: u64 = u64::MAX;

impl<const N: usize> Table<N> {
    /// An empty table.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Table { slots: [const { Slot { key: AtomicU64::new(0), value: AtomicU64::new(0) } }; N] }
    }

    /// An empty table.
    #[cfg(loom)]
    pub fn new() -> Self {
        Table { slots: std::array::from_fn(|_| Slot { key: AtomicU64::new(0), value: AtomicU64::new(0) }) }
    }

    fn places(&self, key: u64) -> impl Iterator<Item = &Slot> {
        // Handles are addresses: their low bits are equal, so multiply them up.
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (0..REACH.min(N)).filter_map(move |i| self.slots.get((hash as usize).wrapping_add(i) & (N - 1)))
    }

    /// The value of a handle.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u64> {
        for slot in self.places(key) {
            match slot.key.load(Ordering::Relaxed) {
                k if k == key => return Some(slot.value.load(Ordering::Acquire)),
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Sets the value of a handle. Returns false if there is no room.
    pub fn set(&self, key: u64, value: u64) -> bool {
        if key == 0 || key == GONE {
            return false;
        }
        for slot in self.places(key) {
            match slot.key.load(Ordering::Relaxed) {
                k if k == key => {
                    slot.value.store(value, Ordering::Release);
                    return true;
                }
                0 => break,
                _ => {}
            }
        }
        for slot in self.places(key) {
            for free in [0, GONE] {
                // A reader that finds the key before the value sees the old
                // value of a removed object for an instant: the API never
                // uses a handle while it is still being created.
                // Pairs with the Release exchange in `remove`.
                match slot.key.compare_exchange(free, key, Ordering::Acquire, Ordering::Relaxed) {
                    // Another thread has set it since we looked: a second slot would outlive its removal.
                    Err(there) if there != key => {}
                    _ => {
                        slot.value.store(value, Ordering::Release);
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Changes the value of a handle that has one, and returns the one before: of threads that change it at once none
    /// forgets what another did. The handle must not be removed meanwhile.
    pub fn update(&self, key: u64, change: impl Fn(u64) -> u64) -> Option<u64> {
        for slot in self.places(key) {
            match slot.key.load(Ordering::Relaxed) {
                k if k == key => {
                    let changed = |value| Some(change(value));
                    return slot.value.fetch_update(Ordering::AcqRel, Ordering::Acquire, changed).ok();
                }
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the value of a key, which is `value` if it had none: of threads that come at once all get the same.
    /// Returns none if there is no room. For tables of which nothing is removed, and values that are not 0.
    pub fn first(&self, key: u64, value: u64) -> Option<u64> {
        if key == 0 || key == GONE {
            return None;
        }
        for slot in self.places(key) {
            let there = slot.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
            if there.map_or_else(|there| there == key, |_| true) {
                // Release and Acquire: what the value stands for is complete.
                return match slot.value.compare_exchange(0, value, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => Some(value),
                    Err(first) => Some(first),
                };
            }
        }
        None
    }

    /// Forgets a handle, and returns its value.
    pub fn remove(&self, key: u64) -> Option<u64> {
        for slot in self.places(key) {
            let there = slot.key.load(Ordering::Relaxed);
            if there == key {
                let value = slot.value.load(Ordering::Acquire);
                // Pairs with the Acquire exchange in `set`.
                let taken = slot.key.compare_exchange(key, GONE, Ordering::Release, Ordering::Relaxed);
                return taken.ok().map(|_| value);
            }
            if there == 0 {
                return None;
            }
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keeps_replaces_and_forgets() {
        let table = Table::<256>::new();
        for i in 1..=150u64 {
            assert!(table.set(i * 4096, i));
        }
        assert!(table.set(4096, 77));
        assert_eq!(table.get(4096), Some(77));
        assert_eq!(table.remove(8192), Some(2));
        assert_eq!(table.get(8192), None);
        assert!((3..=150u64).all(|i| table.get(i * 4096) == Some(i)));
        assert!(!table.set(0, 1));
    }

    #[test]
    fn a_value_is_changed_where_it_stands() {
        let table = Table::<4>::new();
        assert!(table.set(7, 1) && table.set(8, 5));
        assert_eq!((table.update(7, |v| v + 1), table.update(9, |v| v + 1)), (Some(1), None));
        assert_eq!([table.get(7), table.get(8), table.get(9)], [Some(2), Some(5), None]);
    }

    #[test]
    fn the_first_value_of_a_key_stays() {
        let table = Table::<4>::new();
        assert_eq!([table.first(7, 1), table.first(7, 2), table.first(8, 3)], [Some(1), Some(1), Some(3)]);
        assert_eq!((table.get(7), table.first(0, 1)), (Some(1), None));
        assert!(table.set(9, 4) && table.set(10, 5));
        assert_eq!((table.first(9, 6), table.first(11, 6)), (Some(4), None), "full");
    }

    #[test]
    fn a_full_table_says_so() {
        let table = Table::<64>::new();
        assert_eq!((1..=100u64).filter(|i| table.set(i * 16, 1)).count(), 64);
    }
}
