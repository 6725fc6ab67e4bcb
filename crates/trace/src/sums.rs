//! What sums of one whole run say of it: of functions and commands, without events, paths and the
//! times of devices. Saved tallies are such sums, and differences can be made of them.

use serde::Serialize;

/// What a trace lacks. All of it makes its sums smaller than the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Events lost while recording.
    pub lost_events: u64,
    /// Calls that these losses concern, wholly or in part.
    pub lost_calls: u64,
    /// Commands on devices lost while recording.
    pub lost_commands: u64,
    /// Processes whose records could not be read, all or some.
    pub lost_processes: u64,
    /// Packets missing from the streams.
    pub lost_packets: u64,
    /// Bytes that were damaged, or could not be written to disk.
    pub lost_bytes: u64,
    /// Places where a stream is cut or damaged.
    pub damaged: u64,
    /// Files that are missing, or not as they were written.
    pub differences: u64,
    /// Calls without an end: of unknown time, in no row.
    pub unfinished_calls: u64,
    /// Ends of calls without a beginning: in no row.
    pub orphaned_exits: u64,
    /// Commands without times: counted, with no time.
    pub untimed_commands: u64,
    /// Commands in flight when the program ended: in no row.
    pub commands_in_flight: u64,
    /// hetrace has not finished the trace: it records still, or was killed.
    pub manifest_missing: bool,
}

impl Missing {
    /// Returns whether anything is missing.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// Sums of the calls of one function, in nanoseconds. Times include what tracing took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSum {
    /// The API.
    pub api: String,
    /// The function.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// All of their time.
    pub total_ns: u64,
    /// Their time outside of other recorded calls.
    pub self_ns: u64,
    /// What of `total_ns` tracing took.
    pub cost_ns: u64,
    /// What of `self_ns` tracing took.
    pub self_cost_ns: u64,
}

/// Sums of commands on devices that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSum {
    /// Their kind.
    pub kind: String,
    /// The kernel as the API spells it; empty for others.
    pub symbol: String,
    /// The kind of memory that they read; empty if it is not known, and of what moves nothing.
    pub from: String,
    /// The kind of memory that they write; empty if it is not known, and of what moves nothing.
    pub to: String,
    /// How many.
    pub calls: u64,
    /// Of these, nodes of graphs without a time of their own.
    pub of_graphs: u64,
    /// Their time, in nanoseconds.
    pub total_ns: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// Sums of one whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSums {
    /// The traced program and its arguments.
    pub command: Vec<String>,
    /// From the first event to the last, in nanoseconds.
    pub wall_ns: u64,
    /// Processes that recorded anything.
    pub processes: u64,
    /// Devices that had commands.
    pub devices: u64,
    /// Only some launches were timed: times of commands are estimates.
    pub sampled: bool,
    /// What tracing took is known.
    pub cost_known: bool,
    /// What is missing.
    pub missing: Missing,
    /// Each function once.
    pub functions: Vec<FunctionSum>,
    /// Commands; several rows may be of the same kind, kernel and memory.
    pub commands: Vec<CommandSum>,
}
