//! The row of the budget of `--max-overhead`.

use serde::{Deserialize, Serialize};

use super::host::is_zero;

/// How a budget for recording was kept. Of several traces, all those that had one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetRow {
    /// What recording may take of each thread's time, percent; of several traces, the largest.
    pub percent: f64,
    /// Threads that called.
    pub threads: u64,
    /// Those of them that recorded less for a part of their time.
    pub stepped_threads: u64,
    /// How long these recorded how much, all together; those that record most first.
    pub levels: Vec<LevelRow>,
    /// Time of threads in which recording took more than the budget on the average, up to a thread's last step: what is
    /// after that is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub over_ns: u64,
    /// The largest share of such a thread's time, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_percent: Option<f64>,
    /// Commands, as in the table of them.
    pub commands: u64,
    /// Those of them that were timed.
    pub timed_commands: u64,
    /// Calls of which only number and time are known.
    pub added_up_calls: u64,
    /// How far the time of all commands may be from the truth with 95 % probability, percent of it; none if it is
    /// no estimate, or if that is not known for a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_error_percent: Option<f64>,
    /// Rows of commands whose error is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown_errors: u64,
}

/// How long threads recorded so much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelRow {
    /// One of so many commands of a kernel, or of another kind, was timed; 1: all.
    pub one_in: u32,
    /// Whether calls were added up by function.
    pub added_up: bool,
    /// Time of all threads together.
    pub ns: u64,
}
