//! Whether B is worse than is allowed.

use std::fmt;

use serde::Serialize;

use super::By;
use hetrace_trace::text::duration_f;

/// What must not get worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// From the first event to the last.
    Wall,
    /// Time in which devices were busy.
    Device,
    /// Time of all commands.
    Commands,
    /// Time in recorded calls.
    Host,
    /// Each row of the tables.
    Rows,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 5] = [Metric::Wall, Metric::Device, Metric::Commands, Metric::Host, Metric::Rows];

    /// Its name, as one types it.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Wall => "wall",
            Metric::Device => "device",
            Metric::Commands => "commands",
            Metric::Host => "host",
            Metric::Rows => "rows",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Metric::Wall => "wall time",
            Metric::Device => "devices busy",
            Metric::Commands => "device commands",
            Metric::Host => "recorded calls",
            Metric::Rows => "rows",
        }
    }
}

/// What must not happen.
#[derive(Clone, Debug, PartialEq)]
pub struct FailOn {
    /// More than so many percent slower.
    pub percent: f64,
    /// What; wall time, and busy time of devices where it is known, if none is named.
    pub metrics: Vec<Metric>,
}

/// Whether B is worse than is allowed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What was allowed.
    pub limit_percent: f64,
    /// What was looked at.
    pub metrics: Vec<Metric>,
    /// Whether there was an interval: else the differences themselves were compared.
    pub tested: bool,
    /// What is worse; B is fine if there is nothing.
    pub failures: Vec<Failure>,
}

/// Something that is worse than is allowed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// What was looked at.
    pub metric: Metric,
    /// Of rows: of which table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Which one.
    pub what: String,
    /// Mean of A.
    pub a_ns: f64,
    /// Mean of B.
    pub b_ns: f64,
    /// By how much it is slower; of what appeared, in percent of all time of A that the
    /// table is about; none if A has nothing of it.
    pub change_percent: Option<f64>,
    /// The interval of that.
    pub low_percent: Option<f64>,
    /// Its other end.
    pub high_percent: Option<f64>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.by.map_or(String::new(), |by| format!("{} ", by.name()));
        let (a, b) = (duration_f(self.a_ns.round()), duration_f(self.b_ns.round()));
        write!(f, "{table}{}: ", self.what)?;
        match self.change_percent {
            None => f.write_str("new")?,
            Some(percent) if self.a_ns == 0.0 => write!(f, "new, {percent:.1}% of the whole of A")?,
            Some(percent) => write!(f, "{percent:+.1}%")?,
        }
        if let (Some(low), Some(high)) = (self.low_percent, self.high_percent) {
            write!(f, " ({low:+.1}% to {high:+.1}%)")?;
        }
        write!(f, ", {a} to {b}")
    }
}

/// Why nobody can say whether B is worse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotJudged {
    /// What was to be looked at is not known of all runs.
    #[error("`{}` cannot be compared: a file of sums does not have it; name traces", .0.name())]
    NotKnown(Metric),
    /// A run in which nothing was recorded would seem fast.
    #[error("{0}: nothing was recorded, so it cannot be judged")]
    Empty(String),
}
