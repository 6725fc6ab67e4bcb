//! Differences of pairs, and how far to trust their median.

/// The least probability with which the median is to lie within an interval.
const LEAST: f64 = 0.93;

/// The median of differences, and an interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The median of the sample.
    pub median: f64,
    /// The interval's ends: two of the sample.
    pub low: f64,
    pub high: f64,
    /// How probable it is that the true median lies between them, whatever the distribution.
    pub confidence: f64,
}

impl Interval {
    /// Of a sample; none if there is nothing in it.
    ///
    /// A difference lies below the true median in one of two cases. So that all of n do, or all but k, has
    /// the probability of so many heads in n tosses of a coin.
    pub fn of(sample: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = sample.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let mut interval = Self { median: median(&sorted), low: first, high: last, confidence: within(n, 0) };
        for cut in 1..n.div_ceil(2) {
            let confidence = within(n, cut);
            if confidence < LEAST {
                break;
            }
            interval = Self { low: sorted[cut], high: sorted[n - 1 - cut], confidence, ..interval };
        }
        Some(interval)
    }

    /// Whether it is certain which of both is more.
    pub fn excludes_zero(&self) -> bool {
        self.confidence >= LEAST && (self.low > 0.0 || self.high < 0.0)
    }
}

/// The median of sorted values, of which there is one at least.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// The median of values; none of nothing.
pub fn median_of(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median(&sorted))
}

/// How probable it is that the median lies within a sample of n without the `cut` least and greatest.
fn within(n: usize, cut: usize) -> f64 {
    let mut tosses = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut outside = 0.0;
    for heads in 0..=cut {
        outside += tosses;
        tosses *= (n - heads) as f64 / (heads + 1) as f64;
    }
    (1.0 - 2.0 * outside).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_sign_test() {
        let known =
            [(5, 0, 0.9375), (6, 0, 0.96875), (7, 0, 0.984_375), (10, 1, 0.978_515_625), (20, 5, 0.958_61)];
        for (n, cut, expected) in known {
            assert!((within(n, cut) - expected).abs() < 1e-5, "{n} {cut}: {}", within(n, cut));
        }
    }

    #[test]
    fn one_wild_pair_moves_nothing() {
        let sample = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1e9];
        let interval = Interval::of(&sample).expect("values");
        assert_eq!((interval.median, interval.low, interval.high), (5.5, 2.0, 9.0));
        assert!(interval.excludes_zero() && interval.confidence > 0.97);
    }

    #[test]
    fn a_few_say_how_little_they_say() {
        let interval = Interval::of(&[1.0, 2.0]).expect("values");
        assert_eq!((interval.median, interval.confidence), (1.5, 0.5));
        assert!(!interval.excludes_zero());
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(Interval::of(&[f64::NAN]), None);
        assert_eq!(median_of(&[3.0, 1.0]), Some(2.0));
    }
}
