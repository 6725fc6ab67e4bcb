//! The scheduler's statistics of a program's threads: what is left where nothing else is allowed.
//!
//! `/proc/PID/task/TID/schedstat` has three sums since the thread's beginning: nanoseconds on a CPU,
//! nanoseconds of waiting for one, and how often it came to one. They are sampled for the program and, as
//! far as they are found, its descendants; what ends between two samples keeps its last one.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use hetrace_ctf::class::{IntegerClass, StructClass};

use crate::proc::{descendants, numbers};

/// Name of the event.
pub const EVENT: &str = "proc_schedstat";

/// A thread's statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Time on a CPU, of waiting for one, both in nanoseconds, and how often it came to one.
    pub sums: [u64; 3],
}

/// Returns the fields of its event.
pub fn fields() -> StructClass {
    StructClass::default()
        .field("tid", IntegerClass::signed(32))
        .field("pid", IntegerClass::signed(32))
        .field("run_ns", IntegerClass::unsigned(64))
        .field("wait_ns", IntegerClass::unsigned(64))
        .field("timeslices", IntegerClass::unsigned(64))
}

impl Sample {
    fn parse(pid: u32, tid: u32, text: &str) -> Option<Self> {
        let mut sums = text.split_ascii_whitespace().map(|n| n.parse().ok());
        let mut next = || sums.next().flatten();
        Some(Self { pid, tid, sums: [next()?, next()?, next()?] })
    }

    /// Appends the fields of its event.
    pub fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.tid.to_le_bytes());
        into.extend_from_slice(&self.pid.to_le_bytes());
        self.sums.iter().for_each(|sum| into.extend_from_slice(&sum.to_le_bytes()));
    }
}

/// The statistics of a program and its descendants.
#[derive(Debug, Default)]
pub struct Statistics {
    roots: BTreeSet<u32>,
    last: HashMap<u32, [u64; 3]>,
}

impl Statistics {
    /// Begins with these processes.
    pub fn of(roots: impl IntoIterator<Item = u32>) -> Self {
        Self { roots: roots.into_iter().collect(), last: HashMap::new() }
    }

    /// Adds a process.
    pub fn add(&mut self, root: u32) {
        self.roots.insert(root);
    }

    /// Reads the statistics of all threads of which they have changed.
    pub fn sample(&mut self) -> Vec<Sample> {
        let mut changed = Vec::new();
        let all: BTreeSet<u32> = self.roots.iter().flat_map(|root| descendants(*root)).collect();
        for pid in all {
            for tid in numbers(format!("/proc/{pid}/task")) {
                let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat"));
                let sample = text.ok().and_then(|text| Sample::parse(pid, tid, &text));
                let Some(sample) = sample else { continue };
                if self.last.insert(tid, sample.sums) != Some(sample.sums) {
                    changed.push(sample);
                }
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_sums_or_nothing() {
        let of = |text| Sample::parse(1, 2, text).map(|s| s.sums);
        assert_eq!(of("12 34 5\n"), Some([12, 34, 5]));
        for wrong in ["", "1 2", "1 2 x", "-1 2 3"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_process_is_sampled_when_it_has_run() {
        let mut statistics = Statistics::of([std::process::id()]);
        let first = statistics.sample();
        assert!(first.iter().all(|s| s.pid == std::process::id()) && !first.is_empty(), "{first:?}");
        let mut bytes = Vec::new();
        first[0].encode(&mut bytes);
        assert_eq!(bytes.len(), 32);
    }
}
