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

/// Sums of durations of less than 2^32 ns, as most are. No number of them that a trace can have overflows
/// these, so adding one takes no look at that.
#[derive(Clone, Debug)]
pub(super) struct Short {
    pub count: u64,
    /// ns
    total: u128,
    /// ns²
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for Short {
    fn default() -> Self {
        Self { count: 0, total: 0, squares: 0, min: u64::MAX, max: 0 }
    }
}

impl Short {
    #[inline(always)]
    fn add(&mut self, ns: u32) {
        let ns = u64::from(ns);
        self.count += 1;
        self.total += u128::from(ns);
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
    }
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

    /// The same of a short one: only how these are distributed is kept here, the rest in `short`.
    #[inline(always)]
    pub fn add_apart(&mut self, ns: u32, short: &mut Short) {
        short.add(ns);
        self.sketch.add(ns.into(), 1);
    }

    /// Adds what [`Self::add_apart`] left out.
    pub fn add_short(&mut self, short: &Short) {
        let total = u64::try_from(short.total).unwrap_or(u64::MAX);
        self.count = self.count.saturating_add(short.count);
        self.total = self.total.saturating_add(total);
        self.squares = self.squares.saturating_add(short.squares);
        self.min = self.min.min(short.min);
        self.max = self.max.max(short.max);
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
    fn short_ones_apart_are_as_all_together() {
        let values = [0u32, 1, 63, 64, 127, 128, 1_000, 999, 1_000_000, u32::MAX, u32::MAX];
        let (mut together, mut apart, mut short) = (Times::default(), Times::default(), Short::default());
        for (count, ns) in values.into_iter().enumerate() {
            together.add(ns.into());
            apart.add_apart(ns, &mut short);
            assert_eq!(short.count, count as u64 + 1);
        }
        apart.add_short(&short);
        assert_eq!(apart, together);
        // Neither goes beyond what there is room for.
        let mut full = Times { count: u64::MAX, total: u64::MAX, squares: u128::MAX, ..apart.clone() };
        full.add_short(&short);
        assert_eq!((full.count, full.total, full.squares), (u64::MAX, u64::MAX, u128::MAX));
        let long = Short { total: u128::MAX, ..Short::default() };
        apart.add_short(&long);
        assert_eq!(apart.total, u64::MAX);
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
