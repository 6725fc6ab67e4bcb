//! What counters come to from one query to the next, by times that the driver has for both.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::telemetry::Quantity;

/// A device and a quantity.
pub(super) type Key = (usize, Quantity);

/// A time in microseconds and up to two counters at it.
type Counted = (u64, [u64; 2]);

/// The last values of counters.
#[derive(Debug, Default)]
pub(super) struct Rates {
    last: Mutex<HashMap<Key, Counted>>,
}

/// What was counted between two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    microseconds: u64,
    counts: [u64; 2],
}

impl Rates {
    /// Keeps what a counter says now. Returns what it has counted since it was last kept; none the first time, where no
    /// time has passed, and where the counter or its time went back, as after a reset.
    pub fn since_last(&self, key: Key, time: u64, counts: [u64; 2]) -> Option<Rate> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, before) = last.insert(key, (time, counts))?;
        let microseconds = time.checked_sub(then).filter(|passed| *passed > 0)?;
        let [a, b] = counts;
        let counts = [a.checked_sub(before[0])?, b.checked_sub(before[1])?];
        Some(Rate { microseconds, counts })
    }
}

impl Rate {
    /// How much that is in a second.
    pub fn a_second(self, which: usize) -> u64 {
        let count = self.counts.get(which).copied().unwrap_or(0);
        let rate = u128::from(count) * 1_000_000 / u128::from(self.microseconds);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_begin_with_the_second_value_and_after_resets() {
        let rates = Rates::default();
        let key = (0, Quantity::Power);
        assert_eq!(rates.since_last(key, 1_000_000, [500, 7]), None);
        let rate = rates.since_last(key, 1_500_000, [1500, 8]).unwrap();
        assert_eq!((rate.a_second(0), rate.a_second(1)), (2000, 2));
        assert_eq!(rates.since_last(key, 1_500_000, [1500, 8]), None, "no time has passed");
        assert_eq!(rates.since_last(key, 2_000_000, [0, 0]), None, "it was reset");
        assert!(rates.since_last(key, 2_000_001, [u64::MAX, 0]).is_some());
        assert_eq!(rates.since_last((1, Quantity::Power), 2_000_002, [0, 0]), None, "another device");
    }
}
