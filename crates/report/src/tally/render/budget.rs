//! What became of a budget for recording, in words.

use crate::tally::rows::{BudgetRow, LevelRow, Tally};
use hetrace_trace::text::{count, duration, duration_f, plural};

/// From this share of the program's lifetime on, what recording took is worth a limit.
const MUCH: f64 = 0.05;

/// What there is to say of a budget, and of what it made of the tables.
pub(super) fn remarks(t: &Tally) -> Vec<String> {
    let mut remarks: Vec<String> = advice(t).map(str::to_owned).into_iter().collect();
    remarks.extend(lines(t));
    remarks.extend(added_up(t));
    remarks
}

/// Lines about the budget, if there was one.
fn lines(t: &Tally) -> Vec<String> {
    let Some(row) = &t.budget else { return Vec::new() };
    let percent = row.percent;
    if row.stepped_threads == 0 {
        let sampled = t.device.iter().any(|row| row.samples.is_some());
        let all = if sampled { "" } else { ", and all commands were timed" };
        return vec![format!("Overhead budget {percent}%: all calls were recorded{all}.")];
    }
    let mut lines = vec![format!(
        "Overhead budget {percent}%: {} of {} recorded less for a part of their time.",
        count(row.stepped_threads),
        plural(row.threads, "thread")
    )];
    lines.push(format!("  Commands: {}.", timed(row)));
    if row.added_up_calls > 0 || row.levels.iter().any(|level| level.added_up) {
        let ns = row.levels.iter().filter(|level| level.added_up).map(|level| level.ns);
        let time = duration(ns.fold(0, u64::saturating_add));
        lines.push(format!(
            "  Calls: added up by function for {time} ({}).",
            plural(row.added_up_calls, "call")
        ));
    }
    lines.extend(match (row.device_error_percent, row.unknown_errors) {
        (Some(error), _) => Some(format!("  Device total: ±{error:.1}% (95%).")),
        (None, 0) => None,
        (None, rows) => {
            Some(format!("  Device total: ±?, as the error of {} is not known.", plural(rows, "row")))
        }
    });
    if let Some(worst) = row.over_percent {
        lines.push(format!(
            "  Not kept: recording took {worst:.1}% of a thread's time ({} of all threads' time is over).",
            duration(row.over_ns)
        ));
    }
    lines
}

/// How long which commands were timed, and how many were.
fn timed(row: &BudgetRow) -> String {
    let mut times: Vec<(u32, u64)> = Vec::new();
    for LevelRow { one_in, ns, .. } in &row.levels {
        match times.iter_mut().find(|(known, _)| known == one_in) {
            Some((_, sum)) => *sum = sum.saturating_add(*ns),
            None => times.push((*one_in, *ns)),
        }
    }
    times.sort_unstable();
    let level = |(one_in, ns): &(u32, u64)| match one_in {
        1 => format!("all timed {}", duration(*ns)),
        many => format!("one in {many} {}", duration(*ns)),
    };
    let levels = times.iter().map(level).collect::<Vec<_>>().join(", ");
    if row.commands == 0 {
        return levels;
    }
    let share = row.timed_commands as f64 / row.commands as f64 * 100.0;
    format!("{levels}; {} of {} ({share:.1}%) were timed", count(row.timed_commands), count(row.commands))
}

/// What holds of rows with calls that were added up.
fn added_up(t: &Tally) -> Option<String> {
    let rows = || t.host.iter().filter(|row| row.added_up > 0);
    let sum = |of: fn(&crate::tally::HostRow) -> u64| rows().map(of).fold(0, u64::saturating_add);
    let (some, all) = (sum(|row| row.added_up), sum(|row| row.calls));
    let by_range = match t.by.contains(&crate::tally::By::Range) {
        true => " They are in the range that was open when their record was written, after the last of them.",
        false => "",
    };
    let of_calls = match t.memory.is_empty() && t.ranges.is_empty() && t.collectives.is_empty() {
        true => "",
        false => " Memory, ranges and collectives are those of the other calls.",
    };
    (some > 0).then(|| {
        format!(
            "≤ and ≥: of {} of {} calls in these rows only number and time are known. Their averages bound Min and Max; p50, \
             p99 and Dev are of the others. Where one was inside of another, the time of both is in Self.{}{by_range}{of_calls}",
            count(some),
            count(all),
            estimated(t)
        )
    })
}

/// What holds of the times of calls of which only some were timed.
fn estimated(t: &Tally) -> String {
    let rows = || t.host.iter().filter(|row| row.added_up_error_ns > 0);
    let squares = rows().map(|row| (row.added_up_error_ns as f64).powi(2)).sum::<f64>();
    let time = rows().map(|row| row.total_ns as f64).sum::<f64>();
    if squares == 0.0 || time == 0.0 {
        return String::new();
    }
    let error = squares.sqrt();
    format!(
        " Most of them in {} were counted and not timed: their total is estimated from those that were, ± {} ({:.1}%, 95% \
         confidence).",
        plural(rows().count() as u64, "row"),
        duration_f(error),
        error / time * 100.0
    )
}

/// Names the option that limits what recording takes, where that is much and was not limited.
fn advice(t: &Tally) -> Option<&'static str> {
    let row = t.tracing.as_ref().filter(|_| t.budget.is_none())?;
    let much = row.lifetime_ns > 0 && row.total_ns as f64 > row.lifetime_ns as f64 * MUCH;
    much.then_some("`hetrace run --max-overhead 2%` limits what tracing takes of each thread's time.")
}
