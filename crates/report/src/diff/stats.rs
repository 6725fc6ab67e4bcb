//! How far chance alone can move the difference of two means.
//!
//! The bootstrap draws runs of each side with replacement and looks how far the
//! difference of the means goes. Of few runs that alone promises too much: the
//! spread among n runs is too small by √((n−1)/n), and not normal but Student's t.
//! So deviations are stretched by √(n/(n−1)) on each side, and the ends of the
//! interval by t/z with Welch's degrees of freedom. What is skewed stays skewed.

use std::collections::HashMap;

/// Probability that an interval is of.
pub const CONFIDENCE: f64 = 0.95;
/// Draws of runs for one interval.
pub const RESAMPLES: usize = 2 * HALF;

/// Draws of each of two sequences; see [`Bootstrap::deviations`].
const HALF: usize = 2000;
/// The normal distribution has 95 % within.
const Z: f64 = 1.959_963_985;
/// More degrees of freedom are as good as these.
const FREEDOM: f64 = 200.0;

/// Where the difference of two means is, with 95 % probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
    change: f64,
    freedom: f64,
}

impl Interval {
    /// Whether chance alone does not make such a difference.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Whether the same holds if this is one of `rows` intervals of which none may
    /// be wrong (Bonferroni).
    pub fn excludes_zero_among(&self, rows: usize, t: &mut StudentT) -> bool {
        let alone = 1.0 - CONFIDENCE;
        let wider = t.two_sided(alone / rows.max(1) as f64, self.freedom) / t.two_sided(alone, self.freedom);
        let low = self.change - (self.change - self.low) * wider;
        let high = self.change + (self.high - self.change) * wider;
        low > 0.0 || high < 0.0
    }
}

/// Draws, the same for all rows: runs are drawn, not rows.
#[derive(Debug, Default)]
pub(super) struct Bootstrap {
    /// By number of runs, two sequences: how often each run is in each draw.
    draws: HashMap<usize, [Vec<u16>; 2]>,
    pub t: StudentT,
}

impl Bootstrap {
    /// The interval of `mean(b) - mean(a)`; none with fewer than two runs on a side.
    /// The order of the runs does not matter, and swapping the sides turns it around.
    pub fn interval(&mut self, a: &[f64], b: &[f64]) -> Option<Interval> {
        if a.len() < 2 || b.len() < 2 {
            return None;
        }
        let change = mean(b) - mean(a);
        let freedom = freedom(a, b);
        let [a1, a2] = self.deviations(a);
        let [b1, b2] = self.deviations(b);
        // Both sequences serve both sides, so that neither side is special.
        let one = b1.iter().zip(&a2).map(|(b, a)| b - a);
        let other = b2.iter().zip(&a1).map(|(b, a)| b - a);
        let mut off: Vec<f64> = one.chain(other).collect();
        let tail = ((1.0 - CONFIDENCE) / 2.0 * off.len() as f64) as usize;
        let last = off.len().saturating_sub(1 + tail);
        let low = *off.select_nth_unstable_by(tail, f64::total_cmp).1;
        let high = *off.select_nth_unstable_by(last, f64::total_cmp).1;
        let stretch = self.t.two_sided(1.0 - CONFIDENCE, freedom) / Z;
        Some(Interval { low: change + low * stretch, high: change + high * stretch, change, freedom })
    }

    /// By how much means of drawn runs are off the mean of all, by each sequence.
    fn deviations(&mut self, values: &[f64]) -> [Vec<f64>; 2] {
        let n = values.len();
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let mean = mean(&values);
        let scale = (n as f64 / (n as f64 - 1.0)).sqrt() / n as f64;
        values.iter_mut().for_each(|v| *v = (*v - mean) * scale);
        let draws = self.draws.entry(n).or_insert_with(|| [draws(n, 1), draws(n, 2)]);
        let off = |counts: &Vec<u16>| {
            let sum = |draw: &[u16]| draw.iter().zip(&values).map(|(n, v)| f64::from(*n) * v).sum();
            counts.chunks_exact(n).map(sum).collect()
        };
        [off(&draws[0]), off(&draws[1])]
    }
}

/// How often each of `n` runs is in each of the draws.
fn draws(n: usize, seed: u64) -> Vec<u16> {
    let mut random = Random(seed);
    let mut counts = vec![0u16; n * HALF];
    for draw in counts.chunks_exact_mut(n) {
        for _ in 0..n {
            let run = &mut draw[random.below(n)];
            *run = run.saturating_add(1);
        }
    }
    counts
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // Its high half times n: n is far below 2^64.
        ((u128::from(z) * n as u128) >> 64) as usize
    }
}

/// The mean, whatever the order; 0 of none.
pub(super) fn mean(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Welch's degrees of freedom for the difference of two means.
fn freedom(a: &[f64], b: &[f64]) -> f64 {
    let part = |values: &[f64]| {
        let (n, mean) = (values.len() as f64, mean(values));
        let mut squares: Vec<f64> = values.iter().map(|v| (v - mean) * (v - mean)).collect();
        squares.sort_by(f64::total_cmp);
        let of_mean = squares.iter().sum::<f64>() / (n - 1.0) / n;
        (of_mean, of_mean * of_mean / (n - 1.0))
    };
    let ((a, a_by), (b, b_by)) = (part(a), part(b));
    let freedom = (a + b) * (a + b) / (a_by + b_by);
    if freedom.is_finite() { freedom.clamp(1.0, FREEDOM) } else { FREEDOM }
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

    /// Normal values by the sum of twelve even ones; skewed ones by its exponential.
    struct Values(Random);

    impl Values {
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.0.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
        }

        fn run(&mut self, skewed: bool) -> f64 {
            if skewed { (0.5 * self.normal()).exp() } else { 10.0 + self.normal() }
        }
    }

    /// Pairs of sides for which an interval is made.
    const PAIRS: u32 = 300;

    /// Of how many pairs of sides of equal truth the interval has 0 in it, in percent.
    fn held(runs: (usize, usize), skewed: bool) -> f64 {
        let mut values = Values(Random(runs.0 as u64 * 100 + runs.1 as u64));
        let mut bootstrap = Bootstrap::default();
        let mut held = 0;
        for _ in 0..PAIRS {
            let a: Vec<f64> = (0..runs.0).map(|_| values.run(skewed)).collect();
            let b: Vec<f64> = (0..runs.1).map(|_| values.run(skewed)).collect();
            let interval = bootstrap.interval(&a, &b).expect("several runs");
            held += u32::from(!interval.excludes_zero());
        }
        f64::from(held) * 100.0 / f64::from(PAIRS)
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        let mut all = Vec::new();
        for (runs, skewed) in [
            ((3, 3), false),
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
        let mut values = Values(Random(5));
        let mut bootstrap = Bootstrap::default();
        let mut found = 0;
        for _ in 0..60 {
            let a: Vec<f64> = (0..5).map(|_| values.run(false)).collect();
            let b: Vec<f64> = (0..5).map(|_| values.run(false) + 3.0).collect();
            found += u32::from(bootstrap.interval(&a, &b).expect("five runs").low > 0.0);
        }
        // Three standard deviations: Welch's test finds 99 of 100.
        assert!(found >= 54, "{found} of 60");
    }

    #[test]
    fn one_of_many_rows_needs_more() {
        let mut bootstrap = Bootstrap::default();
        let interval = bootstrap.interval(&[1.0, 2.0, 3.0, 2.5], &[4.0, 5.0, 3.5, 4.5]).expect("four runs");
        assert!(interval.excludes_zero() && interval.excludes_zero_among(1, &mut bootstrap.t));
        assert!(!interval.excludes_zero_among(1000, &mut bootstrap.t));
        let sure = bootstrap.interval(&[1.0; 3], &[2.0; 3]).expect("three runs");
        assert!((sure.low, sure.high) == (1.0, 1.0) && sure.excludes_zero_among(1000, &mut bootstrap.t));
    }

    #[test]
    fn order_does_not_matter_and_swapping_turns_it_around() {
        let mut bootstrap = Bootstrap::default();
        let (a, b) = ([3.0, 1.0, 7.0], [2.0, 9.0, 4.0, 4.0]);
        let one = bootstrap.interval(&a, &b).expect("runs");
        let mixed = bootstrap.interval(&[7.0, 3.0, 1.0], &[4.0, 2.0, 4.0, 9.0]).expect("runs");
        let swapped = bootstrap.interval(&b, &a).expect("runs");
        assert_eq!(one, mixed);
        assert_eq!((one.low, one.high), (-swapped.high, -swapped.low));
        assert_eq!(bootstrap.interval(&a, &[1.0]), None);
    }
}
