//! What an event between nodes takes by itself.
//!
//! At the begin of a twin and at its end two events are behind each other with nothing between them. The least that was between
//! two such is what going from one event to the next takes. From an event to a node and on to the next event there are two ways,
//! which can't be seen one by one. So what the twin takes longer than the program's own executable ([`whole`](super::whole)) is
//! divided by its events, and that is taken off each node, within half of the least and twice the mean. A device goes from one
//! of the program's nodes to the next one in no time that events could show: that remains in the times, and is taken to be no more
//! than what it takes to go from one event to the next.
//!
//! Where launches of the program's own were not measured, the least is taken off.

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
    /// Nanoseconds of the shortest launch of the program's executable, and of the twin; `u64::MAX` if none is known.
    own: AtomicU64,
    twin: AtomicU64,
    /// Events in the twin.
    events: u64,
}

impl Price {
    /// Of a twin with so many events in it.
    pub const fn new(events: u64) -> Price {
        Price {
            least: AtomicU64::new(u64::MAX),
            sum: AtomicU64::new(0),
            count: AtomicU64::new(0),
            seen: AtomicU32::new(0),
            own: AtomicU64::new(u64::MAX),
            twin: AtomicU64::new(u64::MAX),
            events,
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

    /// The shortest launch of the program's executable took so many nanoseconds.
    pub fn own_takes(&self, nanoseconds: u64) {
        self.own.fetch_min(nanoseconds, Ordering::Relaxed);
    }

    /// A launch of the twin took so many, from before it to behind it.
    pub fn twin_took(&self, nanoseconds: u64) {
        self.twin.fetch_min(nanoseconds, Ordering::Relaxed);
    }

    /// The end of a node that began at `start` and whose event had the time `end`.
    pub fn end(&self, start: u64, end: u64) -> u64 {
        let off = self.added().unwrap_or_else(|| self.least().unwrap_or(0));
        end.saturating_sub(off).max(start)
    }

    /// How far times of nodes may be off then, in nanoseconds, beside a step of the clock: what going from one event to the next
    /// takes, by the least where it is known what events add, and else on the average, as what is more than the least is in the
    /// times, too.
    pub fn may_be_off(&self) -> u32 {
        let off = self.added().and_then(|_| self.least()).unwrap_or_else(|| self.mean());
        u32::try_from(off.saturating_add(STEP)).unwrap_or(u32::MAX)
    }

    fn least(&self) -> Option<u64> {
        Some(self.least.load(Ordering::Relaxed)).filter(|least| *least != u64::MAX)
    }

    fn mean(&self) -> u64 {
        self.sum.load(Ordering::Relaxed).checked_div(self.count.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// What each event adds to what the program's executable takes; none if that is not known.
    fn added(&self) -> Option<u64> {
        let (own, twin) = (self.own.load(Ordering::Relaxed), self.twin.load(Ordering::Relaxed));
        let least = self.least()?;
        if own == u64::MAX || twin == u64::MAX {
            return None;
        }
        let each = twin.saturating_sub(own).checked_div(self.events)?;
        Some(each.clamp(least / 2, self.mean().max(least).saturating_mul(2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_taken_off_and_never_more_than_there_is() {
        let price = Price::new(4);
        assert_eq!((price.end(100, 2000), price.may_be_off()), (2000, 32), "nothing is known");
        [900, 700, 1100].into_iter().for_each(|ns| price.see(ns));
        assert_eq!(price.end(100, 2000), 1300);
        assert_eq!((price.end(1900, 2000), price.end(2000, 100)), (1900, 2000));
        assert_eq!(price.may_be_off(), 932);
        price.see(u64::MAX / 2);
        assert_eq!(price.may_be_off(), u32::MAX);
    }

    #[test]
    fn what_the_twin_takes_longer_is_divided_by_its_events() {
        let price = Price::new(100);
        [700, 900].into_iter().for_each(|ns| price.see(ns));
        price.own_takes(500_000);
        assert_eq!(
            (price.end(0, 3000), price.may_be_off()),
            (2300, 832),
            "the least, as no launch of the twin is known"
        );
        [640_000, 620_000, 700_000].into_iter().for_each(|ns| price.twin_took(ns));
        assert_eq!((price.end(0, 3000), price.may_be_off()), (1800, 732), "1200 for each event");
        assert_eq!(price.end(2500, 3000), 2500, "never more than there is");
        price.own_takes(100_000);
        assert_eq!(price.end(0, 3000), 1400, "twice the mean at most");
        let short = Price::new(100);
        short.see(700);
        short.own_takes(500_000);
        short.twin_took(400_000);
        assert_eq!(short.end(0, 3000), 2650, "half of the least at least");
        let none = Price::new(0);
        [1, 2].into_iter().for_each(|ns| none.see(ns));
        none.own_takes(1);
        none.twin_took(2);
        assert_eq!(none.end(0, 10), 9);
    }

    #[test]
    fn each_launch_is_seen_once() {
        let price = Price::new(4);
        assert_eq!([1, 1, 2, 2, 3].map(|launch| price.is_new(launch)), [true, false, true, false, true]);
    }
}
