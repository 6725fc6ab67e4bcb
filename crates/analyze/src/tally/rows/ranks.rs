//! Rows of operations among ranks: as [`crate::collectives`] has them, to be read again.

use serde::{Deserialize, Serialize};

use crate::collectives;

/// Collectives of one kind, over all ranks: [`collectives::Row`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectiveRow {
    /// The communicator.
    pub communicator: String,
    /// How many ranks it has; none if the program did not say.
    pub size: Option<u64>,
    /// `all-reduce` and so on.
    pub operation: String,
    /// The elements' type.
    pub element: String,
    /// Calls.
    pub calls: u64,
    /// Of these, calls that share commands with others of their group.
    pub grouped: u64,
    /// Bytes, as NCCL's tests count them.
    pub bytes: u64,
    /// Calls of which commands on a device are known.
    pub timed_calls: u64,
    /// These commands.
    pub commands: u64,
    /// The kernels that they ran; at most 8.
    pub kernels: Vec<String>,
    /// Time of these commands, ns.
    pub total_ns: u64,
    /// Bytes of timed calls in their time, bytes per second.
    pub algorithm_bandwidth: Option<f64>,
    /// The same, comparable with a link's speed.
    pub bus_bandwidth: Option<f64>,
    /// Calls that failed.
    pub errors: u64,
}

impl From<collectives::Row> for CollectiveRow {
    fn from(row: collectives::Row) -> Self {
        Self {
            communicator: row.communicator,
            size: row.size,
            operation: row.operation,
            element: row.element,
            calls: row.calls,
            grouped: row.grouped,
            bytes: row.bytes,
            timed_calls: row.timed_calls,
            commands: row.commands,
            kernels: row.kernels,
            total_ns: row.total_ns,
            algorithm_bandwidth: row.algorithm_bandwidth,
            bus_bandwidth: row.bus_bandwidth,
            errors: row.errors,
        }
    }
}

impl CollectiveRow {
    /// Whether another trace's row is of the same.
    pub(in crate::tally) fn is_like(&self, other: &Self) -> bool {
        self.communicator == other.communicator
            && self.size == other.size
            && self.operation == other.operation
            && self.element == other.element
    }

    /// Adds the calls of other ranks.
    pub(in crate::tally) fn add(&mut self, other: &Self) {
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

/// A communicator, as one rank has it: [`collectives::Communicator`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommunicatorRow {
    /// A short form of the id that all ranks share.
    pub communicator: String,
    /// The process.
    pub pid: i64,
    /// Its handle there.
    pub handle: String,
    /// The process's rank; none if the program did not say.
    pub rank: Option<u64>,
    /// How many ranks there are; none if the program did not say.
    pub size: Option<u64>,
}

impl From<collectives::Communicator> for CommunicatorRow {
    fn from(row: collectives::Communicator) -> Self {
        let collectives::Communicator { communicator, pid, handle, rank, size } = row;
        Self { communicator, pid, handle, rank, size }
    }
}

/// Collectives that a rank has not come out of: [`collectives::Unfinished`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnfinishedCollectiveRow {
    /// The communicator.
    pub communicator: String,
    /// The rank; none if the program did not say.
    pub rank: Option<u64>,
    /// How many ranks there are; none if the program did not say.
    pub size: Option<u64>,
    /// The process.
    pub pid: i64,
    /// The thread that called.
    pub tid: i64,
    /// `all-reduce` and so on.
    pub operation: String,
    /// The elements' type.
    pub element: String,
    /// How many elements the call was given.
    pub count: u64,
    /// When it was called, ns after the first event.
    pub since_ns: u64,
    /// `calling`, `enqueued`, or `last`.
    pub state: String,
    /// Calls behind it that have no end either.
    pub behind: u64,
}

impl From<collectives::Unfinished> for UnfinishedCollectiveRow {
    fn from(row: collectives::Unfinished) -> Self {
        Self {
            communicator: row.communicator,
            rank: row.rank,
            size: row.size,
            pid: row.pid,
            tid: row.tid,
            operation: row.operation,
            element: row.element,
            count: row.count,
            since_ns: row.since_ns,
            state: row.state.to_owned(),
            behind: row.behind,
        }
    }
}
