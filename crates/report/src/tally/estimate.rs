//! Totals of commands of which only some were looked at.

use serde::{Deserialize, Serialize};

/// Durations of samples, each of which stands for some launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Samples {
    /// How many.
    pub count: u64,
    /// ns
    sum: u64,
    /// ns²
    squares: u128,
    /// What the variance of one is multiplied with for that of the total.
    spread: u128,
}

impl Samples {
    /// One of `duration` ns that stands for `weight` launches, itself included.
    pub fn one(duration: u64, weight: u64) -> Self {
        let (time, weight) = (u128::from(duration), u128::from(weight));
        // The others of its share, and that it speaks for them.
        let spread = weight.saturating_mul(weight.saturating_sub(1));
        Self { count: 1, sum: duration, squares: time * time, spread }
    }

    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.spread = self.spread.saturating_add(other.spread);
    }

    /// Whether some launches were not looked at.
    pub fn is_estimate(&self) -> bool {
        self.spread > 0
    }

    /// Half the width, in ns, of the interval that holds the total of all
    /// launches with 95 % probability; none with fewer than two samples.
    pub fn total_error(&self) -> Option<f64> {
        if self.count < 2 || !self.is_estimate() {
            return None;
        }
        let n = self.count as f64;
        Some(quantile(self.count - 1) * (self.variance() * n / (n - 1.0) * self.spread as f64).sqrt())
    }

    /// Standard deviation of those that were looked at, ns.
    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }

    fn variance(&self) -> f64 {
        variance(self.count, self.sum, self.squares)
    }
}

/// The variance of so many values of this sum and sum of squares; 0 of none.
pub(super) fn variance(count: u64, sum: u64, squares: u128) -> f64 {
    let (n, sum) = (u128::from(count.max(1)), u128::from(sum));
    let exact = n.checked_mul(squares).zip(sum.checked_mul(sum));
    let variance = match exact {
        Some((squares, sum)) => squares.saturating_sub(sum) as f64 / (n as f64 * n as f64),
        None => squares as f64 / n as f64 - (sum as f64 / n as f64).powi(2),
    };
    variance.max(0.0)
}

/// Student's t for 95 %, by degrees of freedom; the next smaller ones that are known.
pub(super) fn quantile(freedom: u64) -> f64 {
    const KNOWN: [(u64, f64); 15] = [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (6, 2.447),
        (7, 2.365),
        (8, 2.306),
        (9, 2.262),
        (10, 2.228),
        (15, 2.131),
        (20, 2.086),
        (30, 2.042),
        (60, 2.000),
        (120, 1.980),
    ];
    if freedom > 1000 {
        return 1.96;
    }
    KNOWN.iter().rev().find(|(known, _)| *known <= freedom).map_or(f64::INFINITY, |(_, t)| *t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_are_no_estimate() {
        let mut all = Samples::one(100, 1);
        all.add(&Samples::one(300, 1));
        assert!(!all.is_estimate());
        assert_eq!(all.total_error(), None);
    }

    #[test]
    fn the_interval_holds_the_truth_in_nineteen_of_twenty() {
        // Launches of 1000 to 1999 ns, of which every tenth is looked at.
        let mut random = 12345u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            1000 + (random >> 33) % 1000
        };
        let mut held = 0;
        for _ in 0..400 {
            let (mut truth, mut samples, mut estimate) = (0.0, Samples::default(), 0.0);
            for launch in 0..500 {
                let duration = next();
                truth += duration as f64;
                if launch % 10 == 0 {
                    samples.add(&Samples::one(duration, 10));
                    estimate += duration as f64 * 10.0;
                }
            }
            held += u32::from((estimate - truth).abs() <= samples.total_error().expect("50 samples"));
        }
        assert!((365..=395).contains(&held), "{held} of 400");
    }
}
