//! How much of something there was by a time, in little memory however much comes.

/// So many times are kept.
const KEPT: usize = 1 << 12;

/// A sum by time: exact for the first times, then for every second, fourth and so on.
#[derive(Debug, Clone, Default)]
pub struct Milestones {
    /// Times, and the sum of what was seen before each.
    at: Vec<(u64, u64)>,
    /// Of so many times one is kept, as a power of two.
    thinned: u32,
    seen: u64,
    total: u64,
}

impl Milestones {
    /// Adds an amount at a time, which is not before those that came already.
    pub fn see(&mut self, time: u64, amount: u64) {
        if self.seen.trailing_zeros() >= self.thinned {
            if self.at.len() >= KEPT {
                let mut keep = false;
                self.at.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.thinned += 1;
            }
            self.at.push((time, self.total));
        }
        self.seen += 1;
        self.total = self.total.saturating_add(amount);
    }

    /// Returns the sum of all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the sum from a time on; of many, those of the first few of them may be missing.
    pub fn since(&self, time: u64) -> u64 {
        let first = self.at.partition_point(|(at, _)| *at < time);
        self.at.get(first).map_or(0, |(_, before)| self.total.saturating_sub(*before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_exact() {
        let mut sum = Milestones::default();
        for (time, amount) in [(10, 1), (20, 2), (20, 3), (30, 4)] {
            sum.see(time, amount);
        }
        let from = [0, 10, 11, 20, 21, 30, 31].map(|time| sum.since(time));
        assert_eq!((sum.total(), from), (10, [10, 10, 9, 9, 4, 4, 0]));
    }

    #[test]
    fn many_are_thinned_and_nearly_exact() {
        let mut sum = Milestones::default();
        for n in 0..100_000 {
            sum.see(10 * n, 2);
        }
        assert!(sum.at.len() <= KEPT && sum.thinned > 0);
        for time in [0, 500_000, 999_990, u64::MAX] {
            let truth = 2 * (100_000 - (time / 10).min(100_000));
            assert!(sum.since(time).abs_diff(truth) <= 2 << sum.thinned, "{time}");
        }
    }
}
