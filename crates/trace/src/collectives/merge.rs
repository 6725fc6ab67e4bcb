//! Rows of operations among ranks, those of several traces added up.

use super::Row;

impl Row {
    /// Whether another trace's row is of the same.
    pub fn is_like(&self, other: &Self) -> bool {
        self.communicator == other.communicator
            && self.size == other.size
            && self.operation == other.operation
            && self.element == other.element
    }

    /// Adds the calls of other ranks.
    pub fn add(&mut self, other: &Self) {
        // Bandwidths are means over time: of both, what they moved in both times.
        let (here, there) = (self.total_ns as f64, other.total_ns as f64);
        let mean = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some((a * here + b * there) / (here + there)),
            (one, None) | (None, one) => one,
        };
        self.algorithm_bandwidth = mean(self.algorithm_bandwidth, other.algorithm_bandwidth);
        self.bus_bandwidth = mean(self.bus_bandwidth, other.bus_bandwidth);
        for (to, n) in [
            (&mut self.calls, other.calls),
            (&mut self.grouped, other.grouped),
            (&mut self.bytes, other.bytes),
            (&mut self.timed_calls, other.timed_calls),
            (&mut self.commands, other.commands),
            (&mut self.total_ns, other.total_ns),
            (&mut self.errors, other.errors),
        ] {
            *to = to.saturating_add(n);
        }
        self.kernels.extend(other.kernels.iter().cloned());
        self.kernels.sort();
        self.kernels.dedup();
    }
}
