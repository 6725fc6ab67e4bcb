//! What is known of many durations, so that parts add up.

use std::hint::cold_path;

use serde::{Deserialize, Serialize};

use super::estimate::variance;
use super::sketch::Sketch;

/// Sums of durations. All but quantiles is exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Times {
    pub count: u64,
    /// ns
    pub total: u64,
    /// ns²
    squares: u128,
    min: u64,
    max: u64,
    sketch: Sketch,
}

impl Default for Times {
    fn default() -> Self {
        Self { count: 0, total: 0, squares: 0, min: u64::MAX, max: 0, sketch: Sketch::default() }
    }
}

impl Times {
    /// One of `ns`.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.count = self.count.saturating_add(1);
        self.total = self.total.saturating_add(ns);
        self.squares = self.squares.saturating_add(square(ns));
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sketch.add(ns, 1);
    }

    /// The same for what takes less than some seconds, as most do.
    #[inline(always)]
    pub fn add_short(&mut self, ns: u32) {
        let ns = u64::from(ns);
        // No trace of a program comes to half of what there is room for, and below that nothing overflows: one question
        // instead of one for each sum.
        if self.count | self.total | (self.squares >> 64) as u64 > u64::MAX / 2 {
            return self.add_to_many(ns);
        }
        self.count += 1;
        self.total += ns;
        self.squares += u128::from(ns * ns);
        // Soon neither is new: a branch is cheaper than to write what was there.
        if ns < self.min {
            cold_path();
            self.min = ns;
        }
        if ns > self.max {
            cold_path();
            self.max = ns;
        }
        self.sketch.add(ns, 1);
    }

    /// [`Self::add`]. Inlined, it would take registers from [`Self::add_short`].
    #[cold]
    #[inline(never)]
    fn add_to_many(&mut self, ns: u64) {
        self.add(ns);
    }

    /// So many that took `total` together, of which `ns` is taken for each.
    pub fn add_many(&mut self, ns: u64, weight: u64, total: u64) {
        self.count = self.count.saturating_add(weight);
        self.total = self.total.saturating_add(total);
        let squares = square(ns).saturating_mul(u128::from(weight));
        self.squares = self.squares.saturating_add(squares);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sketch.add(ns, weight);
    }

    /// Adds what another part has.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sketch.merge(&other.sketch);
    }

    /// The shortest, ns; 0 of none.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The longest, ns.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// ns; 0 of none.
    pub fn average(&self) -> f64 {
        average(self.total, self.count)
    }

    /// So great a part is not above, ns, within [`super::sketch::ERROR`]; 0 of none.
    pub fn quantile(&self, part: f64) -> u64 {
        let estimate = self.sketch.quantile(part).unwrap_or(0);
        // Of a few, the least and the greatest are known better.
        estimate.max(self.min()).min(self.max)
    }

    /// Standard deviation of all of them, ns; 0 of none.
    pub fn deviation(&self) -> f64 {
        variance(self.count, self.total, self.squares).sqrt()
    }
}

fn square(ns: u64) -> u128 {
    u128::from(ns) * u128::from(ns)
}

pub(super) fn average(total: u64, calls: u64) -> f64 {
    if calls == 0 { 0.0 } else { total as f64 / calls as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ones_are_as_others() {
        let (mut times, mut shorts) = (Times::default(), Times::default());
        for ns in [1_000u32, 1, 63, 64, 0, 127, 128, 999, 1_000_000, u32::MAX, u32::MAX, 5] {
            times.add(ns.into());
            shorts.add_short(ns);
            assert_eq!(shorts, times, "{ns}");
        }
        let full = Times { count: u64::MAX, total: u64::MAX - 4, squares: u128::MAX - 24, ..times };
        let (mut times, mut shorts) = (full.clone(), full);
        times.add(5);
        shorts.add_short(5);
        assert_eq!((shorts.count, shorts.total, shorts.squares), (u64::MAX, u64::MAX, u128::MAX));
        assert_eq!(shorts, times);
    }

    #[test]
    fn deviation_is_that_of_the_whole() {
        let mut times = Times::default();
        [2u64, 4, 4, 4, 5, 5, 7, 9].iter().for_each(|v| times.add(1_000_000_000 + v));
        assert_eq!(times.deviation(), 2.0);
        assert_eq!((times.min(), times.max()), (1_000_000_002, 1_000_000_009));
        assert_eq!(Times::default().deviation(), 0.0);
        let mut huge = Times::default();
        huge.add(u64::MAX);
        huge.add(u64::MAX);
        assert!(huge.deviation().is_finite());
    }
}
