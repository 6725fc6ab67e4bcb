//! What is to be done when a command of our own has ended, such as storing what it has read: values that one thread leaves
//! and any thread takes up again, in a fixed number of places.
//!
//! ```text
//!           leave            leave, each              each
//!   FREE ──────────► BUSY ───────────────► WAITING ──────────► BUSY ──► FREE
//! ```
//! * The word of a place has its state and its process. What a forked child finds of its parent's is free, also a place at
//!   which a thread of the parent was that the child does not have.
//! * Whoever has changed a word to BUSY has the value alone until it stores the next word. Others pass over the place
//!   meanwhile, a handler in the same thread too, so nobody waits. A handler that leaves by `siglongjmp` in the midst of
//!   this leaves a place busy.
//!
//! `tests/loom_commands.rs` explores the interleavings.

use super::primitive::{AtomicU64, Ordering, UnsafeCell};
use crate::share::Share;

const FREE: u64 = 0;
const BUSY: u64 = 1;
const WAITING: u64 = 2;

/// The word of a place that is this process's.
fn of(pid: u32, state: u64) -> u64 {
    u64::from(pid) << 32 | state
}

/// Whether a thread of this process may take the place with this word.
fn is_free(word: u64, pid: u32) -> bool {
    word == FREE || word >> 32 != u64::from(pid)
}

#[derive(Debug)]
struct Place<T> {
    word: AtomicU64,
    /// The bytes that it keeps, and the value.
    value: UnsafeCell<Option<(u64, T)>>,
}

// SAFETY: `value` is touched only by the thread that has changed `word` to BUSY by an exchange, until it stores another:
// see `Waiting::leave` and `Waiting::each`. Values go from one thread to another, which `T: Send` allows.
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
            places: [const { Place { word: AtomicU64::new(FREE), value: UnsafeCell::new(None) } }; N],
        }
    }

    /// None.
    #[cfg(loom)]
    pub fn new() -> Self {
        let place = |_| Place { word: AtomicU64::new(FREE), value: UnsafeCell::new(None) };
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
            let there = place.word.load(Ordering::Relaxed);
            // Acquire pairs with the Release store of FREE in `each`: who had the place is done with its value.
            if !is_free(there, pid)
                || place
                    .word
                    .compare_exchange(there, of(pid, BUSY), Ordering::Acquire, Ordering::Relaxed)
                    .is_err()
            {
                continue;
            }
            // SAFETY: this thread has changed the word to BUSY just now, so nobody else touches the value before it stores
            // WAITING below.
            place.value.with_mut(|place| unsafe { *place = Some((bytes, value)) });
            self.bytes.take(pid, u64::MAX, bytes);
            // Pairs with the Acquire exchange in `each`: the value is whole.
            place.word.store(of(pid, WAITING), Ordering::Release);
            return true;
        }
        false
    }

    /// Offers each value of this process to `done`, which returns whether it is done with it; then it is forgotten. What
    /// another thread is at is left out.
    pub fn each(&self, pid: u32, mut done: impl FnMut(T) -> bool) {
        for place in &self.places {
            let (waiting, busy) = (of(pid, WAITING), of(pid, BUSY));
            // Acquire pairs with the Release store in `leave`, and with that of WAITING below.
            if place.word.load(Ordering::Relaxed) != waiting
                || place.word.compare_exchange(waiting, busy, Ordering::Acquire, Ordering::Relaxed).is_err()
            {
                continue;
            }
            // SAFETY: this thread has changed the word to BUSY just now, so nobody else touches the value before it stores
            // another word below. The value is copied, so that what `done` does is not done to a borrowed one.
            let value = place.value.with(|place| unsafe { *place });
            let ended = value.is_none_or(|(_, value)| done(value));
            if ended {
                self.bytes.give(pid, value.map_or(0, |(bytes, _)| bytes));
            }
            // FREE pairs with the Acquire exchange in `leave`, WAITING with the one above.
            place.word.store(if ended { FREE } else { waiting }, Ordering::Release);
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
