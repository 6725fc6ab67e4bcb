//! Decides whether B is worse than is allowed.

use super::By;
use super::rows::{Change, Report, Row};
use super::verdict::{FailOn, Failure, Metric, NotJudged, Verdict};

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
