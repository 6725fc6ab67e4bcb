//! What an event between nodes takes by itself.
//!
//! At the begin of a twin and at its end two events are behind each other with nothing between them. The least that was between
//! two such is taken off the time of each node. What is left in a node's time is what a device takes to go from an event to a
//! node, and from there to an event, beyond going from one event to the next: that can't be seen, and is taken to be as much
//! again at most.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nanoseconds between two times that an event can have: all times on GPUs were multiples of it.
const STEP: u64 = 32;

/// What is known of it.
#[derive(Debug)]
pub struct Price {
    /// Nanoseconds: the least; `u64::MAX` if none is known yet.
    least: AtomicU64,
    /// All of them, and how many.
    sum: AtomicU64,
    count: AtomicU64,
    /// The number of the launch that was seen last.
    seen: AtomicU32,
}

impl Price {
    pub const fn new() -> Price {
        Price {
            least: AtomicU64::new(u64::MAX),
            sum: AtomicU64::new(0),
            count: AtomicU64::new(0),
            seen: AtomicU32::new(0),
        }
    }

    /// Whether a launch has not been seen yet.
    pub fn is_new(&self, launch: u32) -> bool {
        self.seen.swap(launch, Ordering::Relaxed) != launch
    }

    /// There were so many nanoseconds between two events with nothing between them.
    pub fn see(&self, nanoseconds: u64) {
        self.least.fetch_min(nanoseconds, Ordering::Relaxed);
        self.sum.fetch_add(nanoseconds, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The end of a node that began at `start` and whose event had the time `end`.
    pub fn end(&self, start: u64, end: u64) -> u64 {
        match self.least.load(Ordering::Relaxed) {
            u64::MAX => end,
            least => end.saturating_sub(least).max(start),
        }
    }

    /// How far times of nodes may be off then, in nanoseconds: what an event takes on the average, as what it takes more than
    /// the least is in them, and what is said above; and a step of the clock.
    pub fn may_be_off(&self) -> u32 {
        let sum = self.sum.load(Ordering::Relaxed);
        let mean = sum.checked_div(self.count.load(Ordering::Relaxed)).unwrap_or(0);
        u32::try_from(mean.saturating_add(STEP)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_taken_off_and_never_more_than_there_is() {
        let price = Price::new();
        assert_eq!((price.end(100, 2000), price.may_be_off()), (2000, 32), "nothing is known");
        [900, 700, 1100].into_iter().for_each(|ns| price.see(ns));
        assert_eq!(price.end(100, 2000), 1300);
        assert_eq!((price.end(1900, 2000), price.end(2000, 100)), (1900, 2000));
        assert_eq!(price.may_be_off(), 932);
        price.see(u64::MAX / 2);
        assert_eq!(price.may_be_off(), u32::MAX);
    }

    #[test]
    fn each_launch_is_seen_once() {
        let price = Price::new();
        assert_eq!([1, 1, 2, 2, 3].map(|launch| price.is_new(launch)), [true, false, true, false, true]);
    }
}
