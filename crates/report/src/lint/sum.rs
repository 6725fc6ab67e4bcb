//! How often something was found, and what it took.

use super::findings::Ref;

/// Equal faults that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub count: u64,
    /// Nanoseconds.
    pub ns: u64,
    pub first: Ref,
}

impl Sum {
    pub fn new(first: Ref) -> Self {
        Self { count: 0, ns: 0, first }
    }

    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }
}
