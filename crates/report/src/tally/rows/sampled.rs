//! Rows of samples of processors.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

/// What threads did with their CPUs. Times are samples times what each stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampledRow {
    /// Samples a second of each thread while it had a CPU; of several traces, the most.
    pub hz: u32,
    /// Samples.
    pub samples: u64,
    /// On CPUs outside of traced calls, ns.
    pub outside_ns: u64,
    /// On CPUs in traced calls, ns.
    pub inside_ns: u64,
    /// Of both, while the kernel worked for the thread, ns.
    pub kernel_ns: u64,
    /// Samples whose stack is not known to its outermost frame.
    pub incomplete: u64,
    /// Records that the kernel dropped.
    pub dropped: u64,
    /// By function, that with the longest time of its own first.
    pub functions: Vec<SampleRow>,
}

/// Samples of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleRow {
    /// The function, and its file or library.
    pub name: String,
    /// Samples in itself.
    pub samples: u64,
    /// In itself, ns.
    pub self_ns: u64,
    /// In itself and what it called, ns.
    pub total_ns: u64,
    /// Of `self_ns`, outside of traced calls.
    pub outside_ns: u64,
    /// Of `self_ns`, in traced calls.
    pub inside_ns: u64,
}

impl SampledRow {
    /// Puts functions in order.
    pub fn sort(&mut self) {
        self.functions.sort_by(|one, other| {
            let key = |row: &SampleRow| (Reverse(row.self_ns), Reverse(row.total_ns));
            key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
        });
    }

    /// Adds those of another trace.
    pub fn add(&mut self, other: Self) {
        let Self { hz, samples, outside_ns, inside_ns, kernel_ns, incomplete, dropped, functions } = other;
        self.hz = self.hz.max(hz);
        for (all, more) in [
            (&mut self.samples, samples),
            (&mut self.outside_ns, outside_ns),
            (&mut self.inside_ns, inside_ns),
            (&mut self.kernel_ns, kernel_ns),
            (&mut self.incomplete, incomplete),
            (&mut self.dropped, dropped),
        ] {
            *all = all.saturating_add(more);
        }
        for row in functions {
            match self.functions.iter_mut().find(|known| known.name == row.name) {
                Some(known) => known.add(&row),
                None => self.functions.push(row),
            }
        }
        self.sort();
    }
}

impl SampleRow {
    fn add(&mut self, other: &Self) {
        for (all, more) in [
            (&mut self.samples, other.samples),
            (&mut self.self_ns, other.self_ns),
            (&mut self.total_ns, other.total_ns),
            (&mut self.outside_ns, other.outside_ns),
            (&mut self.inside_ns, other.inside_ns),
        ] {
            *all = all.saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_several_traces_add_up() {
        let row = |name: &str, ns| SampleRow {
            name: name.to_owned(),
            samples: 1,
            self_ns: ns,
            ..SampleRow::default()
        };
        let of = |functions| SampledRow { hz: 10, samples: 2, functions, ..SampledRow::default() };
        let mut sum = of(vec![row("a", 5), row("b", 1)]);
        sum.add(of(vec![row("b", 7), row("c", 6)]));
        let names: Vec<(&str, u64)> = sum.functions.iter().map(|row| (&*row.name, row.self_ns)).collect();
        assert_eq!((names, sum.samples), (vec![("b", 8), ("c", 6), ("a", 5)], 4));
    }
}
