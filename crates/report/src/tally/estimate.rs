//! Totals of commands of which only some were looked at.

use serde::{Deserialize, Serialize};

/// Durations of samples, each of which stands for some launches.
///
/// A sample that stands for itself only is known, whatever the others are. Of the rest the total is estimated; the
/// variance of that estimate is the sum of w·(w−1)·(t − mean)² over samples of weight w and time t, which were chosen
/// with probability 1/w each (Horvitz and Thompson). So weights may differ from sample to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Saved")]
pub(super) struct Samples {
    /// How many.
    pub count: u64,
    /// Those of them that stand for others, too.
    weighted: Weighted,
    /// Launches that no sample stands for: they were only counted.
    pub unseen: u64,
}

/// Sums of samples that stand for others, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Weighted {
    /// How many.
    count: u64,
    /// What they stand for: launches, and their time, ns.
    launches: u64,
    time: u64,
    /// Sum of w·(w−1).
    spread: u128,
    /// The same, each with its time (ns), and with its square (ns²).
    spread_times: u128,
    spread_squares: u128,
    /// Sum of the squares of w·(w−1).
    spread_spread: u128,
}

/// How they stand in files. Before weights could differ, these had the sums of times and of their squares, and what
/// the variance of one is multiplied with.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Saved {
    count: u64,
    weighted: Weighted,
    unseen: u64,
    spread: u128,
    sum: u64,
    squares: u128,
}

impl From<Saved> for Samples {
    fn from(saved: Saved) -> Self {
        let Saved { count, weighted, unseen, spread, sum, squares } = saved;
        if spread == 0 || count == 0 {
            return Self { count, weighted, unseen };
        }
        let (n, sum) = (u128::from(count), u128::from(sum));
        let weight = f64::midpoint(1.0, (1.0 + 4.0 * (spread / n) as f64).sqrt()).round() as u64;
        let weighted = Weighted {
            count,
            launches: count.saturating_mul(weight),
            time: (sum as u64).saturating_mul(weight),
            spread,
            spread_times: spread.saturating_mul(sum) / n,
            spread_squares: spread.saturating_mul(squares) / n,
            spread_spread: spread.saturating_mul(spread) / n,
        };
        Self { count, weighted, unseen }
    }
}

impl Samples {
    /// One of `duration` ns that stands for `weight` launches, itself included.
    pub fn one(duration: u64, weight: u64) -> Self {
        if weight <= 1 {
            return Self { count: 1, ..Self::default() };
        }
        let (time, wide) = (u128::from(duration), u128::from(weight));
        // The others of its share, and that it speaks for them.
        let spread = wide.saturating_mul(wide - 1);
        let weighted = Weighted {
            count: 1,
            launches: weight,
            time: duration.saturating_mul(weight),
            spread,
            spread_times: spread.saturating_mul(time),
            spread_squares: spread.saturating_mul(time.saturating_mul(time)),
            spread_spread: spread.saturating_mul(spread),
        };
        Self { count: 1, weighted, unseen: 0 }
    }

    /// Adds one of `duration` ns that stands for `weight` launches, itself included.
    #[inline]
    pub fn add_one(&mut self, duration: u64, weight: u64) {
        match weight {
            0 | 1 => self.count = self.count.saturating_add(1),
            _ => self.add(&Self::one(duration, weight)),
        }
    }

    pub fn add(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.weighted, &other.weighted);
        for (to, n) in [
            (&mut self.count, other.count),
            (&mut self.unseen, other.unseen),
            (&mut mine.count, theirs.count),
            (&mut mine.launches, theirs.launches),
            (&mut mine.time, theirs.time),
        ] {
            *to = to.saturating_add(n);
        }
        for (to, n) in [
            (&mut mine.spread, theirs.spread),
            (&mut mine.spread_times, theirs.spread_times),
            (&mut mine.spread_squares, theirs.spread_squares),
            (&mut mine.spread_spread, theirs.spread_spread),
        ] {
            *to = to.saturating_add(n);
        }
    }

    /// Whether some launches were not looked at.
    pub fn is_estimate(&self) -> bool {
        self.weighted.spread > 0 || self.unseen > 0
    }

    /// How far the number of launches that samples stand for may be from their true number by chance. More
    /// were not chosen from.
    pub fn chance(&self) -> f64 {
        // Four standard deviations of a sum of numbers that are each w with probability 1/w, or 0.
        4.0 * (self.weighted.spread as f64).sqrt()
    }

    /// There were `more` launches, or fewer, than samples stand for. Returns by how many ns their time is more, or less;
    /// none if no sample stands for others.
    pub fn stretch(&mut self, more: i64) -> Option<i64> {
        let mine = &mut self.weighted;
        let before = mine.launches;
        if before == 0 {
            return None;
        }
        let launches = before.saturating_add_signed(more);
        let factor = launches as f64 / before as f64;
        let time = (mine.time as f64 * factor) as u64;
        let by = i64::try_from(i128::from(time) - i128::from(mine.time)).unwrap_or(i64::MAX);
        (mine.launches, mine.time) = (launches, time);
        for part in [&mut mine.spread, &mut mine.spread_times, &mut mine.spread_squares] {
            *part = (*part as f64 * factor * factor).round() as u128;
        }
        mine.spread_spread = (mine.spread_spread as f64 * factor.powi(4)).round() as u128;
        Some(by)
    }

    /// Half the width, in ns, of the interval that holds the total of all
    /// launches with 95 % probability; none with fewer than two samples that stand for others, and where launches
    /// were only counted.
    pub fn total_error(&self) -> Option<f64> {
        if self.weighted.count < 2 || self.unseen > 0 {
            return None;
        }
        // Samples of great weight count for more: as so many of one weight.
        let spread = self.weighted.spread as f64;
        let alike = spread * spread / self.weighted.spread_spread as f64;
        let freedom = (alike - 1.0).max(1.0);
        let bias = alike.max(2.0) / freedom;
        Some(quantile(freedom as u64) * (self.squares() * bias).sqrt())
    }

    /// The sum of w·(w−1)·(t − mean)².
    fn squares(&self) -> f64 {
        let exact = self.weighted.spread.checked_mul(self.weighted.spread_squares);
        match exact.zip(self.weighted.spread_times.checked_mul(self.weighted.spread_times)) {
            Some((squares, sum)) => squares.saturating_sub(sum) as f64 / self.weighted.spread.max(1) as f64,
            None => {
                let mean = self.weighted.spread_times as f64 / self.weighted.spread.max(1) as f64;
                (self.weighted.spread_squares as f64 - mean * self.weighted.spread_times as f64).max(0.0)
            }
        }
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

    /// How often of 400 times the interval held the truth, of launches whose duration and weight these say.
    fn held(weight: impl Fn(u64) -> u64, mut duration: impl FnMut(u64, u64) -> u64) -> u32 {
        let mut random = 12345u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            random >> 33
        };
        let mut held = 0;
        for _ in 0..400 {
            let (mut truth, mut samples, mut estimate, mut launches) = (0.0, Samples::default(), 0.0, 0);
            let (mut certain, mut all) = (0u64, 0u64);
            for launch in 0..6000 {
                let (time, weight) = (duration(launch, next()), weight(launch));
                truth += time as f64;
                all += 1;
                // As the first of each is.
                if launch == 0 || next() % weight == 0 {
                    let weight = if launch == 0 { 1 } else { weight };
                    samples.add(&Samples::one(time, weight));
                    estimate += (time * weight) as f64;
                    launches += weight;
                    certain += u64::from(weight == 1);
                }
            }
            assert!(certain > 0);
            let more = all as i64 - launches as i64;
            assert!(more.unsigned_abs() as f64 <= samples.chance());
            estimate += samples.stretch(more).expect("samples") as f64;
            held += u32::from((estimate - truth).abs() <= samples.total_error().expect("samples"));
        }
        held
    }

    #[test]
    fn the_interval_holds_the_truth_in_nineteen_of_twenty() {
        // Launches of 1000 to 1999 ns, of which every tenth is looked at.
        let one_weight = held(|_| 10, |_, random| 1000 + random % 1000);
        assert!((365..=395).contains(&one_weight), "{one_weight} of 400");
    }

    #[test]
    fn the_interval_holds_the_truth_where_weights_change() {
        // All, then one in 4, in 64, and all again; the first takes long, as it makes things ready.
        let weight = |launch| match launch {
            0..500 => 1,
            500..1500 => 4,
            1500..5500 => 64,
            _ => 1,
        };
        let of = |launch, random| if launch == 0 { 5_000_000 } else { 1000 + random % 1000 };
        let changing = held(weight, of);
        assert!((365..=395).contains(&changing), "{changing} of 400");
        // Times that change with the weights: the interval is too wide rather than too narrow.
        let phases = held(weight, |launch, random| if launch < 1500 { 300 } else { 1000 } + random % 1000);
        assert!(phases >= 365, "{phases} of 400");
        // What is looked at wholly does not count, however long it takes.
        let mut samples = Samples::one(1_000_000, 1);
        [1000u64, 1010, 990].iter().for_each(|time| samples.add(&Samples::one(*time, 10)));
        assert!(samples.total_error().expect("three samples") < 1000.0);
    }

    #[test]
    fn what_was_only_counted_has_no_known_error() {
        let mut samples = Samples::one(1000, 1);
        assert_eq!((samples.is_estimate(), samples.stretch(4999)), (false, None));
        samples.unseen = 4999;
        assert_eq!((samples.is_estimate(), samples.total_error()), (true, None));
        // Nor has one sample of many.
        assert_eq!(Samples::one(1000, 64).total_error(), None);
    }

    #[test]
    fn files_of_one_weight_for_all_are_read() {
        let old: Samples = serde_json::from_str(r#"{"count":5,"sum":5000,"squares":5025000,"spread":49500}"#)
            .expect("what was written before");
        let mut new = Samples::default();
        [1000, 1100, 900, 1050, 950].iter().for_each(|time| new.add(&Samples::one(*time, 100)));
        assert_eq!(old, new);
    }
}
