//! The report of a walk.

use std::collections::HashMap;

use super::causes::Words;
use super::collect::Collector;
use super::reporter::Reporter;
use super::rows::{DeviceRow, MissingRow, Report, SCHEMA};
use super::verdict::whole;
use hetrace_trace::capture::Covered;
use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Thread;

/// The report of a walk.
pub(super) fn report(from: &Collector<'_>, summary: &Summary) -> Report {
    let manifest = from.trace.manifest();
    let named = summary.threads.iter().map(|t: &Thread| ((t.pid, t.tid), t.name.as_str()));
    let names: HashMap<(i64, i64), &str> = named.collect();
    let reporter = Reporter {
        from,
        words: Words {
            trace: from.trace,
            facts: &from.facts,
            lost: from.lost,
            threads: &from.threads,
            names: &names,
        },
        zero: from.first.unwrap_or(0),
        names: &names,
        run: from.window.of(from.first.unwrap_or(0), from.last),
    };
    let used = from.devices.iter().enumerate().filter(|(_, d)| d.first.is_some() || d.untimed > 0);
    let mut devices: Vec<(usize, DeviceRow)> = used.map(|(at, d)| (at, reporter.device(d))).collect();
    if let Some(wanted) = &from.options.device {
        devices.retain(|(_, d)| {
            d.number.to_string() == *wanted || d.name.contains(wanted) || d.uuid.contains(wanted)
        });
    }
    devices.sort_by_key(|(_, d)| (std::cmp::Reverse(d.total_ns), d.number));
    let (places, devices): (Vec<usize>, Vec<DeviceRow>) = devices.into_iter().unzip();
    let whole = whole(&reporter, &places);
    let covered = Covered::of(from.trace, reporter.zero, summary.last.unwrap_or(0));
    let limited = from.options.from.is_some() || from.options.to.is_some() || covered.is_some();
    let window = (
        from.window.from.saturating_sub(reporter.zero),
        from.window.to.min(from.last).saturating_sub(reporter.zero),
    );
    Report {
        schema: SCHEMA,
        command: manifest.command.clone(),
        duration_ns: summary.duration(),
        window_ns: limited.then_some(window),
        covers: covered.map(|covered| covered.to_string()),
        verdict: whole.verdict,
        steady: whole.steady,
        start_up: whole.start_up,
        savings: whole.savings,
        costs: whole.costs,
        cpu: whole.cpu,
        devices,
        waits: reporter.waits(),
        transfers: reporter.transfers(),
        path: reporter.path(),
        inside: Vec::new(),
        missing: missing(from, summary),
    }
}

fn missing(from: &Collector<'_>, summary: &Summary) -> MissingRow {
    let manifest = from.trace.manifest();
    MissingRow {
        lost_events: summary.lost_events,
        lost_by: manifest.losses.threads.iter().map(|t| (t.pid, t.tid, t.records)).collect(),
        lost_calls: summary.lost_calls,
        lost_commands: summary.lost_commands,
        lost_processes: summary.lost_processes,
        lost_os_events: summary.lost_os_events,
        unseen_switches: summary.unseen_switches,
        commands_in_flight: manifest.losses.commands_in_flight,
        untimed_commands: summary.untimed,
        unfinished_calls: summary.unfinished,
        lost_packets: summary.lost_packets,
        damaged: summary.damaged,
        differences: summary.differences,
        steps_back: summary.steps_back,
        sampled: from.sampled,
        given_up: from.devices.iter().map(|d| d.sweep.given_up).sum(),
        // Other tracers' traces have no models, and need no manifest.
        manifest_missing: from.trace.lacks_manifest(),
        clock_error_ns: manifest.device_error_ns().map(|ns| ns as f64),
        call_cost_ns: from.trace.costs().of_any(),
    }
}
