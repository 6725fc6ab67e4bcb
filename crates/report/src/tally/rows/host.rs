//! Rows of the host's tables.

use serde::{Deserialize, Serialize};

use crate::tally::Group;
use hetrace_trace::system::Shares;

/// What the tracer itself has cost, as it was measured when each trace began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracingRow {
    /// Calls that are counted; of traces where the cost is known.
    pub calls: u64,
    /// What tracing has cost in all, in all threads together: the sum of the parts.
    pub total_ns: u64,
    /// The same if every call had found the recorder in the processor's nearest caches, and if none had; with the least
    /// and the most that the collector's calibrated parts may be.
    pub least_ns: u64,
    /// See above.
    pub most_ns: u64,
    /// Of `total_ns`, what recording the calls took: those of a function that mostly takes less than a microsecond as
    /// calls in a row do, others as calls behind other work.
    pub calls_ns: u64,
    /// Of `total_ns`, what timing commands took, where it is done inside of the calls that enqueue them.
    #[serde(skip_serializing_if = "is_zero")]
    pub timing_ns: u64,
    /// Of `total_ns`, what collecting commands that had finished took.
    #[serde(skip_serializing_if = "is_zero")]
    pub collecting_ns: u64,
    /// Of `total_ns`, what calls took longer in the driver because their commands were timed: known only where some were
    /// not (`--max-overhead`). Of a part of the calls it is not counted, as what follows.
    #[serde(skip_serializing_if = "is_zero")]
    pub driver_ns: u64,
    /// Of `total_ns`, what libraries took to begin when they were loaded, without the dynamic loader's part.
    #[serde(skip_serializing_if = "is_zero")]
    pub loading_ns: u64,
    /// Of `total_ns`, what making the memory into which processes record took.
    #[serde(skip_serializing_if = "is_zero")]
    pub setup_ns: u64,
    /// Of `total_ns`, what a collector of device times took of the program's threads: to begin, buffers, flushing, ending.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_ns: u64,
    /// Of `collector_ns`, what it took to begin.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_start_ns: u64,
    /// Of `collector_ns`, what it took when contexts and processes ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_end_ns: u64,
    /// Of `total_ns`, what it does in calls that enqueue: not measured, but by what it takes on machines where that was.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_calls_ns: u64,
    /// Of `total_ns`, what it does where contexts are made and processes end, likewise.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_once_ns: u64,
    /// What it took on a thread of its own; not in `total_ns`, as the program does not wait for it.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_apart_ns: u64,
    /// Commands of the tracer's own on devices: fills and copies of the memory that kernels record into (`run --inside`). They
    /// are in no table of commands.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_commands: u64,
    /// Bytes of these.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_bytes: u64,
    /// Their time on the devices, as far as it is known; not in `total_ns`.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_device_ns: u64,
    /// Of `total_ns`, what lay inside of recorded calls.
    pub inside_ns: u64,
    /// Whether times of calls are without it; else they are as they were recorded.
    pub left_out: bool,
    /// How long the programs lived, as far as that is known.
    #[serde(skip_serializing_if = "is_zero")]
    pub lifetime_ns: u64,
    /// Of several traces, those where it is not known: their times are as they were recorded.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown_traces: u64,
}

impl TracingRow {
    /// The parts of [`Self::total_ns`] that are not measured, but known of other machines.
    pub fn calibrated_ns(&self) -> u64 {
        self.collector_calls_ns.saturating_add(self.collector_once_ns)
    }

    /// All parts of [`Self::total_ns`] that were measured in the run, but for what recording the calls took.
    pub fn besides_ns(&self) -> u64 {
        let parts = [
            self.timing_ns,
            self.collecting_ns,
            self.driver_ns,
            self.loading_ns,
            self.setup_ns,
            self.collector_ns,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// What is not known.
pub(super) fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Who called an API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiTotals {
    /// The API.
    pub api: String,
    /// How people spell it; its name where the model does not say.
    pub title: String,
    /// Processes with a call of it.
    pub processes: u64,
    /// Threads with a call of it.
    pub threads: u64,
    /// All calls.
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Time in successful calls outside of other recorded calls, of any API: what
    /// this API itself costs.
    pub self_ns: u64,
    /// What of that was the tracer's: see [`HostRow::self_cost_ns`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_ns: u64,
    /// Time in failed calls outside of other recorded calls.
    #[serde(default)]
    pub error_self_ns: u64,
    /// What of that was the tracer's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error_cost_ns: u64,
}

/// The calls of a function, or of what else rows are grouped by. Times are
/// those of successful calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRow {
    /// The function; empty if rows are not grouped by it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its API; empty if rows are not grouped by it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api: String,
    /// What else the row is of.
    #[serde(flatten)]
    pub group: Group,
    /// All calls that ended.
    pub calls: u64,
    /// Of these, calls that were recorded as a run of equal ones.
    pub folded: u64,
    /// Of these, calls that were added up to keep within a budget: only their number and their time are known.
    #[serde(skip_serializing_if = "is_zero")]
    pub added_up: u64,
    /// How far `total_ns` and `self_ns` may be off, with a probability of 95 %, as only some of those calls were timed; 0 if all
    /// were.
    #[serde(skip_serializing_if = "is_zero")]
    pub added_up_error_ns: u64,
    /// Time in them.
    pub total_ns: u64,
    /// Time in them outside of other recorded calls. Which calls were inside of those that were added up is not known:
    /// the time of these counts for both.
    pub self_ns: u64,
    /// What recording these calls and those inside of them took of their time. It is left out of it, unless
    /// [`TracingRow::left_out`] says otherwise: what was recorded is both together. It is the sum of what was left
    /// out of each call, and so in every grouping.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_ns: u64,
    /// The same of `self_ns`.
    #[serde(skip_serializing_if = "is_zero")]
    pub self_cost_ns: u64,
    /// Average of the successful ones.
    pub avg_ns: f64,
    /// The shortest; of a run of equal calls, their average. If calls were added up, the shortest took no longer than
    /// this, which is the least of the others and of the average of these.
    pub min_ns: u64,
    /// The longest; of a run of equal calls, their average. If calls were added up, the longest took no less than this.
    pub max_ns: u64,
    /// Half of them took no longer, within 1/128 of the value; of a run, their average. As what follows of those that
    /// were not added up.
    pub p50_ns: u64,
    /// 99 of 100 took no longer, within 1/128 of the value; of a run, their average.
    pub p99_ns: u64,
    /// Standard deviation; of a run, their average.
    pub dev_ns: f64,
    /// Of rows by layer: of the successful calls, how many were inside of another call of their layer, and their time. What
    /// the layer above called, and how long it waited for that, is `calls` and `total_ns` without these.
    #[serde(skip_serializing_if = "is_zero")]
    pub nested_calls: u64,
    /// Time in them, as `total_ns`.
    #[serde(skip_serializing_if = "is_zero")]
    pub nested_ns: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Time in calls that failed.
    pub error_ns: u64,
    /// What of that is or was the tracer's, as `cost_ns`.
    #[serde(skip_serializing_if = "is_zero")]
    pub error_cost_ns: u64,
    /// Time in calls that failed outside of other recorded calls, which adds up over rows with `self_ns`.
    pub error_self_ns: u64,
    /// What the threads did in the successful calls that were recorded each by itself, as recorded; none if the trace
    /// does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<Shares>,
}

/// Calls of a function that failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRow {
    /// The function.
    pub name: String,
    /// Its API.
    pub api: String,
    /// The code's name, or the code.
    pub error: String,
    /// The code.
    pub code: i64,
    /// What the API itself says of the code, if that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How often.
    pub calls: u64,
    /// Time in them; 0 if a file of sums of an older form does not say it.
    #[serde(default)]
    pub total_ns: u64,
}

/// Calls of a function that have no end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedRow {
    /// The function.
    pub name: String,
    /// Its API.
    pub api: String,
    /// How many.
    pub calls: u64,
    /// Of these, how many were still running when the trace ends.
    pub running: u64,
    /// Of these, how many are missing their end because it was lost.
    pub lost: u64,
    /// Of those that make communicators: with what they were called; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}
