//! What several runs took, though one of them was disturbed, and how far chance alone can move the difference
//! between two sides.
//!
//! One disturbed run moves a mean anywhere and makes the spread so large that no change is seen behind it. So
//! from five runs on the least and the greatest fifth of a side are left out (a trimmed mean). The interval of the
//! difference is Yuen's: the spread of a trimmed mean comes from values of which those left out are replaced by
//! the nearest that are not (winsorized), and the interval has Student's t at Welch's degrees of freedom of the
//! runs that are left. With fewer runs nothing is left out, and both are Welch's. `docs/decisions` 0043 has why.

use std::collections::HashMap;

/// Probability that an interval is of.
pub const CONFIDENCE: f64 = 0.95;
/// The part of the runs of a side that is left out at each end.
pub const TRIMMED: f64 = 0.2;

/// More degrees of freedom are as good as these.
const FREEDOM: f64 = 200.0;
/// A run is disturbed that is so many times as far from the rest as these are from each other, …
const FAR: f64 = 5.0;
/// … and by this part of what they take.
const MUCH: f64 = 0.05;

/// Where the difference of two sides is, with 95 % probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
    change: f64,
    /// Standard error of the change.
    error: f64,
    freedom: f64,
}

impl Interval {
    /// The interval of `typical(b) - typical(a)`; none with fewer than two runs on a side.
    /// The order of the runs does not matter, and swapping the sides turns it around.
    pub fn of(a: &[f64], b: &[f64], t: &mut StudentT) -> Option<Self> {
        if a.len() < 2 || b.len() < 2 {
            return None;
        }
        let change = typical(b) - typical(a);
        let ((a, a_by), (b, b_by)) = (spread(a), spread(b));
        let freedom = (a + b) * (a + b) / (a_by + b_by);
        let freedom = if freedom.is_finite() { freedom.clamp(1.0, FREEDOM) } else { FREEDOM };
        let error = (a + b).sqrt();
        let off = t.two_sided(1.0 - CONFIDENCE, freedom) * error;
        Some(Self { low: change - off, high: change + off, change, error, freedom })
    }

    /// Whether chance alone does not make such a difference.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Whether the same holds if this is one of `rows` intervals of which none may
    /// be wrong (Bonferroni).
    pub fn excludes_zero_among(&self, rows: usize, t: &mut StudentT) -> bool {
        let off = t.two_sided((1.0 - CONFIDENCE) / rows.max(1) as f64, self.freedom) * self.error;
        self.change - off > 0.0 || self.change + off < 0.0
    }
}

/// What the runs of a side take: the mean without the least and the greatest fifth of them, whatever the
/// order; 0 of none.
pub(super) fn typical(values: &[f64]) -> f64 {
    let values = sorted(values);
    let kept = kept(&values);
    if kept.is_empty() { 0.0 } else { kept.iter().sum::<f64>() / kept.len() as f64 }
}

/// The runs that are so far from the others of their side that something else must have disturbed them, by
/// their place; none of fewer than five.
pub(super) fn disturbed(values: &[f64]) -> Vec<usize> {
    let ordered = sorted(values);
    let kept = kept(&ordered);
    let (Some(first), Some(last)) = (kept.first(), kept.last()) else { return Vec::new() };
    if kept.len() == values.len() {
        return Vec::new();
    }
    let far = ((last - first) * FAR).max(typical(values).abs() * MUCH);
    let is_far = |value: f64| value < first - far || value > last + far;
    (0..values.len()).filter(|at| values.get(*at).is_some_and(|value| is_far(*value))).collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// How many of so many runs are left out at each end.
fn left_out(runs: usize) -> usize {
    // A fifth, rounded down; whole numbers, so that it is the same on every machine.
    runs / 5
}

/// Whether any of so many runs is left out.
pub(super) fn are_trimmed(runs: usize) -> bool {
    left_out(runs) > 0
}

/// What is not left out of values in order.
fn kept(ordered: &[f64]) -> &[f64] {
    let out = left_out(ordered.len());
    ordered.get(out..ordered.len() - out).unwrap_or_default()
}

/// The square of the standard error of what a side takes, and its part in Welch's degrees of freedom.
fn spread(values: &[f64]) -> (f64, f64) {
    let ordered = sorted(values);
    let kept = kept(&ordered);
    let (Some(first), Some(last)) = (kept.first(), kept.last()) else { return (0.0, 0.0) };
    let winsorized: Vec<f64> = ordered.iter().map(|value| value.clamp(*first, *last)).collect();
    let mean = winsorized.iter().sum::<f64>() / winsorized.len() as f64;
    let squares = sorted(&winsorized.iter().map(|v| (v - mean) * (v - mean)).collect::<Vec<f64>>());
    let left = kept.len() as f64;
    let of_all = squares.iter().sum::<f64>() / (left * (left - 1.0));
    (of_all, of_all * of_all / (left - 1.0))
}

/// Quantiles of Student's t, each worked out once.
#[derive(Debug, Default)]
pub(super) struct StudentT(HashMap<(u64, u32), f64>);

impl StudentT {
    /// Where `|t|` is above with this probability.
    pub fn two_sided(&mut self, probability: f64, freedom: f64) -> f64 {
        // Between whole numbers, quantiles go with 1/ν.
        let (below, above) = (freedom.floor(), freedom.ceil());
        let (t_below, t_above) = (self.whole(probability, below), self.whole(probability, above));
        if above <= below {
            return t_below;
        }
        let part = (1.0 / below - 1.0 / freedom) / (1.0 / below - 1.0 / above);
        t_below + (t_above - t_below) * part
    }

    fn whole(&mut self, probability: f64, freedom: f64) -> f64 {
        let freedom = freedom as u32;
        *self.0.entry((probability.to_bits(), freedom)).or_insert_with(|| {
            let (mut low, mut high) = (0.0, 1.0);
            while within(high, freedom) < 1.0 - probability && high < 1e12 {
                high *= 2.0;
            }
            for _ in 0..100 {
                let middle = f64::midpoint(low, high);
                match within(middle, freedom) < 1.0 - probability {
                    true => low = middle,
                    false => high = middle,
                }
            }
            high
        })
    }
}

/// The probability of `|t|` below a value, by the finite series that whole
/// degrees of freedom have (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn within(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let mut term = if odd { cos } else { 1.0 };
    let (mut sum, mut k) = (if freedom > 1 { term } else { 0.0 }, if odd { 2 } else { 1 });
    while k + 2 < freedom {
        term *= f64::from(k) / f64::from(k + 1) * cos * cos;
        sum += term;
        k += 2;
    }
    match odd {
        true => (angle + sin * sum) * std::f64::consts::FRAC_2_PI,
        false => sin * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_books() {
        let mut t = StudentT::default();
        for (freedom, known) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (3.0, 3.182),
            (4.0, 2.776),
            (7.0, 2.365),
            (10.0, 2.228),
            (30.0, 2.042),
            (120.0, 1.980),
        ] {
            let found = t.two_sided(0.05, freedom);
            assert!((found - known).abs() < 6e-4, "{freedom}: {found} for {known}");
        }
        // 99.9 %, and between two whole ones.
        assert!((t.two_sided(0.001, 5.0) - 6.869).abs() < 1e-3);
        let between = t.two_sided(0.05, 4.5);
        assert!((2.650..2.670).contains(&between), "{between}");
    }

    /// SplitMix64.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^= z >> 31;
            // Its high half times n: n is far below 2^64.
            ((u128::from(z) * u128::from(n)) >> 64) as u64
        }

        /// Evenly from 0 to 1.
        fn even(&mut self) -> f64 {
            self.below(1 << 30) as f64 / f64::from(1 << 30)
        }

        /// Normal, by the sum of twelve even ones.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.even()).sum::<f64>() - 6.0
        }

        /// Normal, or skewed: its exponential.
        fn run(&mut self, skewed: bool) -> f64 {
            if skewed { (0.5 * self.normal()).exp() } else { 10.0 + self.normal() }
        }

        /// A side of five runs of a program that takes so long, with a spread of 1 %, of which one is disturbed: it
        /// takes a tenth longer to twice as long.
        fn with_a_disturbed_one(&mut self, ns: f64) -> Vec<f64> {
            let mut runs: Vec<f64> = (0..5).map(|_| ns * (1.0 + 0.01 * self.normal())).collect();
            let at = self.below(5) as usize;
            runs[at] *= 1.1 + 0.9 * self.even();
            runs
        }
    }

    fn interval(a: &[f64], b: &[f64]) -> Option<Interval> {
        Interval::of(a, b, &mut StudentT::default())
    }

    /// Pairs of sides for which an interval is made.
    const PAIRS: u32 = 1000;

    /// Of how many pairs of sides of equal truth the interval has 0 in it, in percent.
    fn held(runs: (usize, usize), skewed: bool) -> f64 {
        let mut random = Random(runs.0 as u64 * 100 + runs.1 as u64);
        let mut t = StudentT::default();
        let mut held = 0;
        for _ in 0..PAIRS {
            let a: Vec<f64> = (0..runs.0).map(|_| random.run(skewed)).collect();
            let b: Vec<f64> = (0..runs.1).map(|_| random.run(skewed)).collect();
            let interval = Interval::of(&a, &b, &mut t).expect("several runs");
            held += u32::from(!interval.excludes_zero());
        }
        f64::from(held) * 100.0 / f64::from(PAIRS)
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        let mut all = Vec::new();
        for (runs, skewed) in [
            ((3, 3), false),
            ((4, 4), false),
            ((5, 5), false),
            ((10, 10), false),
            ((3, 10), false),
            ((5, 5), true),
            ((20, 20), true),
        ] {
            all.push((runs, skewed, held(runs, skewed)));
        }
        assert!(all.iter().all(|(.., held)| (91.5..=98.5).contains(held)), "{all:?}");
    }

    #[test]
    fn two_runs_of_each_promise_no_more_than_they_can() {
        let held = held((2, 2), false);
        assert!(held >= 92.0, "{held}");
    }

    #[test]
    fn a_true_difference_is_found() {
        let mut random = Random(5);
        let mut found = 0;
        for _ in 0..60 {
            let a: Vec<f64> = (0..5).map(|_| random.run(false)).collect();
            let b: Vec<f64> = (0..5).map(|_| random.run(false) + 3.0).collect();
            found += u32::from(interval(&a, &b).expect("five runs").low > 0.0);
        }
        // Three standard deviations: Welch's test finds 99 of 100, Yuen's a few less.
        assert!(found >= 51, "{found} of 60");
    }

    #[test]
    fn five_percent_are_found_behind_a_disturbed_run() {
        // Of which side it is does not matter.
        for (disturb_a, disturb_b) in [(true, false), (false, true), (true, true)] {
            let mut random = Random(u64::from(disturb_a) * 2 + u64::from(disturb_b));
            let mut found = 0;
            for _ in 0..200 {
                let mut side = |ns: f64, disturbed: bool| match disturbed {
                    true => random.with_a_disturbed_one(ns),
                    false => (0..5).map(|_| ns * (1.0 + 0.01 * random.normal())).collect(),
                };
                let (a, b) = (side(100.0, disturb_a), side(105.0, disturb_b));
                let interval = interval(&a, &b).expect("five runs");
                found += u32::from(interval.low > 0.0 && typical(&b) > 1.02 * typical(&a));
            }
            assert!(found >= 170, "{found} of 200, disturbed: {disturb_a} {disturb_b}");
        }
    }

    #[test]
    fn a_disturbed_run_is_no_alarm() {
        // What `--fail-on 2%` asks for, 60 times 16 comparisons of a thing with itself.
        let mut random = Random(7);
        let mut alarms = 0;
        for _ in 0..60 * 16 {
            let (a, b) = (random.with_a_disturbed_one(100.0), random.with_a_disturbed_one(100.0));
            let interval = interval(&a, &b).expect("five runs");
            alarms += u32::from(interval.low > 0.0 && typical(&b) > 1.02 * typical(&a));
        }
        assert!(alarms <= 6, "{alarms} of 960");
    }

    #[test]
    fn a_disturbed_run_is_named() {
        assert_eq!(disturbed(&[100.0, 101.0, 160.0, 99.0, 100.5]), [2]);
        assert!(disturbed(&[100.0, 101.0, 102.0, 99.0, 100.5]).is_empty());
        // Close together, and what is off is little; of three nobody knows which it is.
        assert!(disturbed(&[100.0, 100.0, 101.0, 100.0, 100.0]).is_empty());
        assert!(disturbed(&[100.0, 160.0, 100.0]).is_empty());
        assert!(disturbed(&[]).is_empty());
    }

    #[test]
    fn one_of_many_rows_needs_more() {
        let mut t = StudentT::default();
        let few = interval(&[1.0, 2.0, 3.0, 2.5], &[4.0, 5.0, 3.5, 4.5]).expect("four runs");
        assert!(few.excludes_zero() && few.excludes_zero_among(1, &mut t));
        assert!(!few.excludes_zero_among(1000, &mut t));
        let sure = interval(&[1.0; 3], &[2.0; 3]).expect("three runs");
        assert!((sure.low, sure.high) == (1.0, 1.0) && sure.excludes_zero_among(1000, &mut t));
    }

    #[test]
    fn order_does_not_matter_and_swapping_turns_it_around() {
        let (a, b) = ([3.0, 1.0, 7.0], [2.0, 9.0, 4.0, 4.0, 5.0]);
        let one = interval(&a, &b).expect("runs");
        let mixed = interval(&[7.0, 3.0, 1.0], &[4.0, 5.0, 2.0, 4.0, 9.0]).expect("runs");
        let swapped = interval(&b, &a).expect("runs");
        assert_eq!(one, mixed);
        assert_eq!((one.low, one.high), (-swapped.high, -swapped.low));
        assert_eq!(interval(&a, &[1.0]), None);
    }
}
