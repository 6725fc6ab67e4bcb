//! What is to be done when a command of our own has ended, such as storing what it has read: values that one thread leaves
//! and any thread takes up again, in a fixed number of places.
//!
//! A place is handed over by its [`Slot`]: whoever has that busy has the value alone.
//!
//! `tests/loom_commands.rs` explores the interleavings.

use super::primitive::UnsafeCell;
use super::slot::Slot;
use crate::share::Share;

#[derive(Debug)]
struct Place<T> {
    slot: Slot,
    /// The bytes that it keeps, and the value.
    value: UnsafeCell<Option<(u64, T)>>,
}

// SAFETY: `value` is touched only by the thread that has `slot` busy: see `Waiting::leave` and `Waiting::each`. Values go from
// one thread to another, which `T: Send` allows.
unsafe impl<T: Send> Sync for Place<T> {}

/// Up to `N` values.
#[derive(Debug)]
pub struct Waiting<T, const N: usize> {
    /// What the values keep.
    bytes: Share,
    places: [Place<T>; N],
}

impl<T: Copy, const N: usize> Waiting<T, N> {
    /// None.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Waiting {
            bytes: Share::new(),
            places: [const { Place { slot: Slot::new(), value: UnsafeCell::new(None) } }; N],
        }
    }

    /// None.
    #[cfg(loom)]
    pub fn new() -> Self {
        let place = |_| Place { slot: Slot::new(), value: UnsafeCell::new(None) };
        Waiting { bytes: Share::new(), places: std::array::from_fn(place) }
    }

    /// Whether there may be some: never false if there are.
    #[inline]
    pub fn may_have_some(&self) -> bool {
        self.bytes.is_any_taken()
    }

    /// How many bytes the values of this process keep, in whole pages.
    pub fn bytes(&self, pid: u32) -> u64 {
        self.bytes.taken(pid)
    }

    /// Leaves a value, which keeps so many bytes. Returns false if there is no place for it.
    pub fn leave(&self, pid: u32, bytes: u64, value: T) -> bool {
        let bytes = bytes.max(1);
        for place in &self.places {
            if !place.slot.claim(pid) {
                continue;
            }
            // SAFETY: this thread has claimed the slot just now, so nobody else touches the value before it is filled below.
            place.value.with_mut(|place| unsafe { *place = Some((bytes, value)) });
            self.bytes.take(pid, u64::MAX, bytes);
            place.slot.fill(pid);
            return true;
        }
        false
    }

    /// Offers each value of this process to `done`, which returns whether it is done with it; then it is forgotten. What
    /// another thread is at is left out.
    pub fn each(&self, pid: u32, mut done: impl FnMut(T) -> bool) {
        for place in &self.places {
            if !place.slot.take_up(pid) {
                continue;
            }
            // SAFETY: this thread has taken the slot up just now, so nobody else touches the value before it is filled or
            // free again below. The value is copied, so that what `done` does is not done to a borrowed one.
            let value = place.value.with(|place| unsafe { *place });
            if value.is_none_or(|(_, value)| done(value)) {
                self.bytes.give(pid, value.map_or(0, |(bytes, _)| bytes));
                place.slot.free();
            } else {
                place.slot.fill(pid);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn seen<const N: usize>(waiting: &Waiting<u32, N>, pid: u32, keep: bool) -> Vec<u32> {
        let mut seen = Vec::new();
        waiting.each(pid, |value| {
            seen.push(value);
            !keep
        });
        seen
    }

    #[test]
    fn values_wait_in_their_places_until_somebody_is_done_with_them() {
        let waiting = Waiting::<u32, 2>::new();
        assert!(!waiting.may_have_some() && seen(&waiting, 7, false).is_empty());
        assert!(waiting.leave(7, 3 * PAGE, 1) && waiting.leave(7, 5, 2));
        assert!(!waiting.leave(7, 1, 3), "no place");
        assert_eq!((waiting.bytes(7), waiting.may_have_some()), (4 * PAGE, true));
        assert_eq!((seen(&waiting, 7, true), seen(&waiting, 7, true)), (vec![1, 2], vec![1, 2]));
        waiting.each(7, |value| value == 1);
        assert_eq!(waiting.bytes(7), PAGE);
        assert!(waiting.leave(7, 0, 4), "its place is used again");
        assert_eq!((seen(&waiting, 7, false), seen(&waiting, 7, false)), (vec![4, 2], vec![]));
        assert_eq!((waiting.bytes(7), waiting.may_have_some()), (0, false));
    }

    #[test]
    fn a_forked_child_has_nothing_of_its_parents() {
        let waiting = Waiting::<u32, 2>::new();
        assert!(waiting.leave(7, PAGE, 1) && waiting.leave(7, PAGE, 2));
        // The parent forks while it is at the first one.
        waiting.each(7, |value| {
            if value == 1 {
                assert!(seen(&waiting, 8, false).is_empty());
                assert_eq!(waiting.bytes(8), 0);
                assert!(waiting.leave(8, 5 * PAGE, 3) && waiting.leave(8, 5 * PAGE, 4));
                assert_eq!((waiting.bytes(8), seen(&waiting, 8, true)), (10 * PAGE, vec![3, 4]));
            }
            true
        });
    }

    #[test]
    fn what_comes_while_one_is_looked_at_is_looked_at_later() {
        let waiting = Waiting::<u32, 3>::new();
        assert!(waiting.leave(7, 1, 1));
        let mut inner = Vec::new();
        waiting.each(7, |value| {
            if value == 1 {
                inner.extend(seen(&waiting, 7, false));
                assert!(waiting.leave(7, 1, 2));
            }
            value == 1
        });
        assert!(inner.is_empty(), "it is the outer one's");
        assert_eq!(seen(&waiting, 7, false), [2]);
    }
}
