//! Distributions of durations in little memory.

use super::rows::Distribution;

/// Buckets of each power of two: a value is known to 1/64 of itself.
const PARTS: u32 = 5;

/// How often which duration was.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

fn bucket(value: u64) -> usize {
    let exact = 1 << PARTS;
    if value < exact {
        return value as usize;
    }
    let shift = value.ilog2() - PARTS;
    (((shift + 1) << PARTS) as usize) + ((value >> shift) as usize & (exact as usize - 1))
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let exact = 1_usize << PARTS;
    if bucket < exact {
        return bucket as u64;
    }
    let shift = (bucket >> PARTS) - 1;
    let low = ((exact + (bucket & (exact - 1))) as u64) << shift;
    low.saturating_add((1_u64 << shift) / 2)
}

impl Histogram {
    pub fn add(&mut self, value: u64) {
        let at = bucket(value);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// The value that this part of all is not above.
    pub fn quantile(&self, part: f64) -> u64 {
        let rank = ((self.count as f64 * part).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        for (at, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return middle(at).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// How many are above a value, to 1/64 of it.
    pub fn above(&self, value: u64) -> u64 {
        self.counts.iter().skip(bucket(value) + 1).sum()
    }

    /// None of nothing.
    pub fn distribution(&self) -> Option<Distribution> {
        (self.count > 0).then(|| Distribution {
            count: self.count,
            avg_ns: self.sum as f64 / self.count as f64,
            min_ns: self.min,
            p50_ns: self.quantile(0.5),
            p99_ns: self.quantile(0.99),
            max_ns: self.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_to_a_sixty_fourth() {
        for value in (0..64).map(|bit| 1_u64 << bit).flat_map(|v| [v - 1, v, v + v / 3]) {
            let near = middle(bucket(value));
            assert!(near.abs_diff(value) <= value / 64 + 1, "{value} as {near}");
        }
        assert!(middle(bucket(u64::MAX)) > u64::MAX / 64 * 63);
    }

    #[test]
    fn quantiles_are_of_the_values() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|v| histogram.add(v * 1000));
        let found = histogram.distribution().expect("values");
        assert_eq!((found.min_ns, found.max_ns, found.count), (1000, 100_000, 100));
        assert!(found.p50_ns.abs_diff(50_000) < 800 && found.p99_ns.abs_diff(99_000) < 1600);
        assert_eq!(Histogram::default().distribution(), None);
    }
}
