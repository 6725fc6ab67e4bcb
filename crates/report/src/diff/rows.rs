//! The report as data; serialized, it is `diff --json`.

use serde::Serialize;

use super::profile::RunRow;
use super::verdict::Verdict;
use super::{By, Time};

/// Version of the JSON form.
pub const SCHEMA: u32 = 2;

/// What differs between the runs of A and those of B. Times are in nanoseconds and,
/// unless said otherwise, means over the runs of a side, from five runs on without the least and the
/// greatest fifth of them; a change is B less A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The runs of A.
    pub a: Vec<RunRow>,
    /// The runs of B.
    pub b: Vec<RunRow>,
    /// Which time of calls is compared.
    pub time: Time,
    /// Whether sums are divided by the numbers of processes and devices.
    pub per_process: bool,
    /// Only these names were compared; all if there is none.
    pub filter: Vec<String>,
    /// Probability that an interval is of.
    pub confidence: f64,
    /// The part of five and more runs that is left out at each end.
    pub trimmed: f64,
    /// The runs as wholes.
    pub whole: Vec<WholeRow>,
    /// Parts of them.
    pub tables: Vec<Table>,
    /// What was asked for by `--fail-on`, and whether it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What to know about the comparison.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether sums of any run are smaller than the truth.
    pub fn is_lossy(&self) -> bool {
        self.a.iter().chain(&self.b).any(|run| run.missing.any())
    }
}

/// A difference, and how far chance alone could make it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// Mean of the runs of A; see [`Report`].
    pub a_ns: f64,
    /// Mean of the runs of B.
    pub b_ns: f64,
    /// B less A.
    pub change_ns: f64,
    /// The same in percent of A; none if A is 0.
    pub change_percent: Option<f64>,
    /// The interval of the change; none with one run on a side.
    pub low_ns: Option<f64>,
    /// Its other end.
    pub high_ns: Option<f64>,
    /// The interval in percent of `a_ns`.
    pub low_percent: Option<f64>,
    /// Its other end.
    pub high_percent: Option<f64>,
    /// 0 is outside of the interval.
    pub significant: bool,
    /// Significant after Bonferroni correction for the intervals of the table.
    pub significant_of_all: bool,
    /// Each run of A.
    pub a_runs_ns: Vec<f64>,
    /// Each run of B.
    pub b_runs_ns: Vec<f64>,
}

/// Something about runs as wholes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WholeRow {
    /// `wall`, `device`, `commands` or `host`.
    pub metric: &'static str,
    /// The difference.
    #[serde(flatten)]
    pub change: Change,
}

/// Rows of one sort.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// What rows are of.
    pub by: By,
    /// Whole time of what the table is about in A, whatever is left out of it.
    pub a_ns: f64,
    /// The same in B.
    pub b_ns: f64,
    /// Rows with an interval: so many chances to be wrong.
    pub intervals: usize,
    /// Rows that changed too little to be shown.
    pub hidden: usize,
    /// Rows that both sides have; what changed most stands first.
    pub rows: Vec<Row>,
    /// Rows that no run of A has.
    pub appeared: Vec<Row>,
    /// Rows that no run of B has.
    pub vanished: Vec<Row>,
}

/// A function of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Step {
    /// Its API; empty for `…`.
    pub api: String,
    /// Its name; `…` for what is too deep or one of too many.
    pub name: String,
}

/// What a row is of. What does not say anything is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct What {
    /// The function; of kernels the whole name, demangled; of others their kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api: String,
    /// The functions of a path, the outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Step>,
    /// The kind of command.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Where memory is moved from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Where it goes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// The device's name, if rows are grouped by device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device: String,
}

/// A part of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    #[serde(flatten)]
    pub what: What,
    /// The kernel as its API reports it, in one of the runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// The difference.
    #[serde(flatten)]
    pub change: Change,
    /// The change in percent of all time of A that the table is about.
    pub of_whole_percent: Option<f64>,
    /// The part that it has in the change of the whole, in percent; negative if it goes
    /// the other way; none if the whole did not change.
    pub share_percent: Option<f64>,
    /// Calls of a run of A.
    pub a_calls: f64,
    /// Calls of a run of B.
    pub b_calls: f64,
    /// The part of the change that more or fewer calls make. With the next one it adds
    /// up to the change.
    pub by_calls_ns: f64,
    /// The part that slower or faster calls make.
    pub by_time_ns: f64,
    /// Bytes of a run of A.
    #[serde(skip_serializing_if = "is_zero")]
    pub a_bytes: f64,
    /// Bytes of a run of B.
    #[serde(skip_serializing_if = "is_zero")]
    pub b_bytes: f64,
    /// Runs of A that have it.
    pub a_runs: usize,
    /// Runs of B that have it.
    pub b_runs: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(n: &f64) -> bool {
    *n == 0.0
}
