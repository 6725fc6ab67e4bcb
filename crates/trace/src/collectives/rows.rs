//! What the tables of collectives say.

use serde::{Deserialize, Serialize};

/// A communicator, as one rank has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Communicator {
    /// A short form of the id that all ranks share. One made from another is
    /// called after it, with a number behind, and with the color by which ranks were distinguished.
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

/// Collectives of one kind, over all ranks in the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// The communicator's [`Communicator::communicator`].
    pub communicator: String,
    /// How many ranks it has; none if the program did not say.
    pub size: Option<u64>,
    /// `all-reduce` and so on; with `+` between for a group of different ones.
    pub operation: String,
    /// The elements' type.
    pub element: String,
    /// Calls.
    pub calls: u64,
    /// Of these, calls that share commands with others of their group; times
    /// and bandwidths are the group's.
    pub grouped: u64,
    /// Bytes, as NCCL's tests count them: what a rank has in all before or after
    /// the operation, whichever is more.
    pub bytes: u64,
    /// Calls of which commands on a device are known.
    pub timed_calls: u64,
    /// These commands.
    pub commands: u64,
    /// The kernels that they ran, as the API reports their names; at most 8.
    pub kernels: Vec<String>,
    /// Time of these commands, waiting for other ranks included, ns.
    pub total_ns: u64,
    /// Bytes of timed calls in their time, bytes per second.
    pub algorithm_bandwidth: Option<f64>,
    /// The same times the factor that makes it comparable with a link's speed;
    /// none if the size is not known or a group has different operations.
    pub bus_bandwidth: Option<f64>,
    /// Calls that failed.
    pub errors: u64,
}

/// Collectives that a rank has not come out of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unfinished {
    /// The communicator's [`Communicator::communicator`].
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
    /// Which of the rank's calls in the communicator it is, from 1: a rank that is in an
    /// earlier one than the others is the one that they wait for.
    pub nth: u64,
    /// When it was called, ns on the trace's clock.
    pub since_ns: u64,
    /// `calling`: the call has not returned; `enqueued`: no end of its commands
    /// is known; `last`: the last one called, of which no commands are known at all;
    /// `ended`: the last one called has ended, and other ranks are in a later one.
    pub state: String,
    /// Calls behind it that have no end either.
    pub behind: u64,
}

/// How many times a rank's elements make the operation's size.
pub(super) fn times_ranks(operation: &str) -> bool {
    matches!(operation, "all-gather" | "reduce-scatter" | "all-to-all" | "gather" | "scatter")
}

/// What the bandwidth of an algorithm is multiplied with, so that it compares
/// with a link's; as NCCL's tests have it.
pub(super) fn bus_factor(operation: &str, ranks: Option<u64>) -> Option<f64> {
    if operation.contains('+') {
        return None;
    }
    let share = |ranks: u64| ranks.saturating_sub(1) as f64 / ranks.max(1) as f64;
    match operation {
        "all-reduce" => ranks.map(|n| 2.0 * share(n)),
        operation if times_ranks(operation) => ranks.map(share),
        _ => Some(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_the_tests() {
        assert_eq!(bus_factor("all-reduce", Some(8)), Some(1.75));
        assert_eq!(bus_factor("all-gather", Some(4)), Some(0.75));
        assert_eq!(bus_factor("reduce-scatter", Some(1)), Some(0.0));
        assert_eq!(bus_factor("broadcast", None), Some(1.0));
        assert_eq!(bus_factor("all-reduce", None), None);
        assert_eq!(bus_factor("receive+send", Some(8)), None);
    }
}
