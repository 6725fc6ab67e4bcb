//! Which threads may be inside of `dlopen`, and until when they are waited for.
//!
//! A thread says so before the watch is extended ([`super::seal`]): who finds that time finds the thread, too.
//!
//! `tests/loom_opening.rs` explores the interleavings.

use crate::primitive::{AtomicU64, Ordering};

/// A thread that may be inside of `dlopen`.
#[derive(Debug)]
struct Place {
    /// The thread; 0 if there is none.
    thread: AtomicU64,
    /// Until when it is waited for.
    until: AtomicU64,
}

/// Up to `N` of them.
#[derive(Debug)]
pub(super) struct Openers<const N: usize> {
    places: [Place; N],
    /// More threads than that were inside: until when only time shows.
    crowded: AtomicU64,
}

impl<const N: usize> Openers<N> {
    /// None.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        let places = [const { Place { thread: AtomicU64::new(0), until: AtomicU64::new(0) } }; N];
        Openers { places, crowded: AtomicU64::new(0) }
    }

    /// None.
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        let place = |_| Place { thread: AtomicU64::new(0), until: AtomicU64::new(0) };
        Openers { places: std::array::from_fn(place), crowded: AtomicU64::new(0) }
    }

    /// This thread is about to enter `dlopen`, and is waited for until then.
    pub(super) fn enters(&self, me: u64, now: u64, until: u64) {
        for place in &self.places {
            let there = place.thread.load(Ordering::Acquire);
            let free = there == 0 || there == me || place.until.load(Ordering::Acquire) <= now;
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            if free && place.thread.compare_exchange(there, me, order.0, order.1).is_ok() {
                return place.until.store(until, Ordering::Release);
            }
        }
        self.crowded.fetch_max(until, Ordering::AcqRel);
    }

    /// This thread is outside. Returns whether it had been inside.
    pub(super) fn has_left(&self, me: u64) -> bool {
        // More than one, if it began another `dlopen` inside of the first.
        let places = self.places.iter().filter(|p| p.thread.load(Ordering::Acquire) == me);
        places.inspect(|p| p.thread.store(0, Ordering::Release)).count() > 0
    }

    /// Returns whether no thread is inside.
    pub(super) fn are_none(&self, now: u64) -> bool {
        let is_inside =
            |p: &Place| p.thread.load(Ordering::Acquire) != 0 && p.until.load(Ordering::Acquire) > now;
        self.crowded.load(Ordering::Acquire) <= now && !self.places.iter().any(is_inside)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_all_that_it_began() {
        let openers = Openers::<4>::new();
        openers.enters(1, 10, 20);
        openers.enters(2, 10, 20);
        assert!(openers.has_left(1) && !openers.has_left(1));
        assert!(!openers.are_none(11));
        openers.enters(2, 11, 21);
        openers.enters(1, 11, 21);
        assert!(openers.has_left(2) && openers.has_left(1), "the inner one began in another place");
        assert!(openers.are_none(11));
    }

    #[test]
    fn one_that_does_not_come_is_waited_for_until_its_time() {
        let openers = Openers::<2>::new();
        openers.enters(1, 10, 20);
        assert!(!openers.are_none(19) && openers.are_none(20));
        openers.enters(2, 20, 30);
        openers.enters(3, 20, 30);
        assert!(!openers.has_left(1), "another has its place");
        assert!(openers.has_left(2) && openers.has_left(3));
    }

    #[test]
    fn of_more_than_there_is_room_for_only_time_shows() {
        let openers = Openers::<1>::new();
        openers.enters(1, 10, 20);
        openers.enters(2, 10, 25);
        openers.enters(3, 10, 22);
        assert!(openers.has_left(1) && !openers.has_left(2));
        assert!(!openers.are_none(24) && openers.are_none(25));
    }
}
