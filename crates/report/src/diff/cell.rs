//! Sums that are compared.

/// Sums of calls, or of commands. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub calls: u64,
    pub total: u64,
    /// Outside of other recorded calls; of commands, all of it.
    pub own: u64,
    /// What of `total` and of `own` tracing took.
    pub cost: u64,
    pub own_cost: u64,
    pub bytes: u64,
    /// Of `calls`, nodes of graphs without a time of their own.
    pub of_graphs: u64,
}

impl Cell {
    pub fn add(&mut self, other: &Self) {
        for (to, n) in [
            (&mut self.calls, other.calls),
            (&mut self.total, other.total),
            (&mut self.own, other.own),
            (&mut self.cost, other.cost),
            (&mut self.own_cost, other.own_cost),
            (&mut self.bytes, other.bytes),
            (&mut self.of_graphs, other.of_graphs),
        ] {
            *to = to.saturating_add(n);
        }
    }

    /// All of its time or its own, without what tracing took or with it.
    pub fn time(&self, whole: bool, net: bool) -> u64 {
        let (time, cost) = if whole { (self.total, self.cost) } else { (self.own, self.own_cost) };
        if net { time.saturating_sub(cost) } else { time }
    }
}
