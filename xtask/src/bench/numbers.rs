//! Samples and what is reported of them.

use serde_json::{Value, json};

/// Numbers of the same thing, measured again and again.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    values: Vec<f64>,
    least: Option<f64>,
}

impl Samples {
    /// One more.
    pub fn add(&mut self, value: f64) {
        self.add_with_least(value, value);
    }

    /// One more, itself the median of several of which the least is known.
    pub fn add_with_least(&mut self, value: f64, least: f64) {
        self.values.push(value);
        self.least = Some(self.least.map_or(least, |l| l.min(least)));
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Arithmetic mean; not a number if there is none.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The one in the middle; not a number if there is none.
    pub fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[half],
            _ => f64::midpoint(sorted[half - 1], sorted[half]),
        }
    }

    /// Standard deviation of the sample; 0 for a single one.
    pub fn sd(&self) -> f64 {
        if self.values.len() < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|v| (v - mean) * (v - mean)).sum();
        (squares / (self.values.len() - 1) as f64).sqrt()
    }

    /// The least of all.
    pub fn min(&self) -> f64 {
        self.least.unwrap_or(f64::NAN)
    }

    /// All of it, for programs.
    pub fn json(&self) -> Value {
        json!({
            "samples": self.count(),
            "mean": self.mean(),
            "median": self.median(),
            "sd": self.sd(),
            "min": self.min(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_none_and_one_and_many() {
        let mut samples = Samples::default();
        assert!(samples.median().is_nan() && samples.min().is_nan());
        samples.add(3.0);
        assert_eq!((samples.mean(), samples.median(), samples.sd()), (3.0, 3.0, 0.0));
        samples.add_with_least(1.0, 0.5);
        assert_eq!((samples.mean(), samples.median(), samples.min()), (2.0, 2.0, 0.5));
        samples.add(8.0);
        assert_eq!((samples.mean(), samples.median(), samples.sd()), (4.0, 3.0, 13f64.sqrt()));
    }
}
