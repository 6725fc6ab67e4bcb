//! Whether B is worse than is allowed.

use std::fmt;

use serde::Serialize;

use super::By;
use super::rows::{Change, Report, Row};
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
    #[error("`{}` cannot be compared: a file of sums does not tell it; name traces", .0.name())]
    NotKnown(Metric),
    /// A run in which nothing was recorded would seem fast.
    #[error("{0}: nothing was recorded, so it cannot be judged")]
    Empty(String),
}

/// Looks whether a report's B is worse than is allowed.
pub(super) fn verdict(report: &Report, fail_on: &FailOn) -> Result<Verdict, NotJudged> {
    let runs = || report.a.iter().chain(&report.b);
    if let Some(empty) = runs().find(|run| run.calls == 0 && run.commands == 0) {
        return Err(NotJudged::Empty(empty.run.clone()));
    }
    let known = |metric: Metric| metric != Metric::Device || runs().all(|run| run.busy_ns.is_some());
    let metrics = match fail_on.metrics.as_slice() {
        [] => [Metric::Wall, Metric::Device].into_iter().filter(|m| known(*m)).collect(),
        named => named.to_vec(),
    };
    if let Some(missing) = metrics.iter().find(|metric| !known(**metric)) {
        return Err(NotJudged::NotKnown(*missing));
    }
    let mut failures = Vec::new();
    for &metric in &metrics {
        for row in report.whole.iter().filter(|row| row.metric == metric.name()) {
            let percent = row.change.change_percent;
            if is_worse(&row.change, percent, row.change.significant, fail_on.percent) {
                failures.push(failure(metric, None, metric.title().to_owned(), &row.change, percent));
            }
        }
        if metric != Metric::Rows {
            continue;
        }
        for table in &report.tables {
            for row in table.rows.iter().chain(&table.appeared) {
                let percent = row.change.change_percent.or(row.of_whole_percent);
                // One of many is likely to be beyond its interval by chance.
                if is_worse(&row.change, percent, row.change.significant_of_all, fail_on.percent) {
                    failures.push(failure(metric, Some(table.by), title(row), &row.change, percent));
                }
            }
        }
    }
    let tested = report.a.len() > 1 && report.b.len() > 1;
    Ok(Verdict { limit_percent: fail_on.percent, metrics, tested, failures })
}

/// Without an interval the difference itself decides. What is new is worse than any limit.
fn is_worse(change: &Change, percent: Option<f64>, significant: bool, limit: f64) -> bool {
    percent.is_none_or(|percent| percent > limit)
        && change.change_ns > 0.0
        && (significant || change.low_ns.is_none())
}

fn failure(metric: Metric, by: Option<By>, what: String, change: &Change, percent: Option<f64>) -> Failure {
    Failure {
        metric,
        by,
        what,
        a_ns: change.a_ns,
        b_ns: change.b_ns,
        change_percent: percent,
        low_percent: change.low_percent,
        high_percent: change.high_percent,
    }
}

/// A row in a line, whole.
fn title(row: &Row) -> String {
    let what = &row.what;
    let mut text = match what.path.as_slice() {
        [] if what.name.is_empty() => what.api.clone(),
        [] => what.name.clone(),
        path => path.iter().map(|step| step.name.as_str()).collect::<Vec<_>>().join(" > "),
    };
    if !what.from.is_empty() || !what.to.is_empty() {
        let or = |memory: &str| if memory.is_empty() { "?".to_owned() } else { memory.to_owned() };
        text = format!("{text} {} to {}", or(&what.from), or(&what.to));
    }
    if what.device.is_empty() { text } else { format!("{text} on {}", what.device) }
}
