//! Samples of processors by function: what the program's threads did with their CPUs, in traced calls and outside.

use std::collections::{HashMap, HashSet};

use super::query::Query;
use super::rows::{SampleRow, SampledRow};
use hetrace_trace::samples::{Where, each, function_of};
use hetrace_trace::stacks::{Kind, StackId};
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::Stopped;

/// What was sampled in one stack, in calls or outside.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    samples: u64,
    ns: u64,
    kernel_ns: u64,
}

/// Sums up the samples that a query wants; none if there are none, or calls of some names or APIs only are wanted.
///
/// # Errors
/// When the query's watch says so.
pub(super) fn sampled(trace: &Trace, query: &Query<'_>) -> Result<Option<SampledRow>, Stopped> {
    if !trace.has_samples() || !query.names.is_empty() || !query.apis.is_empty() {
        return Ok(None);
    }
    let mut sums: HashMap<(StackId, bool), Sum> = HashMap::new();
    let has = |all: &[i64], id: i64| all.is_empty() || all.contains(&id);
    each(trace, query.watch, &mut |since, _, sample, place| {
        let is_then = query.from.is_none_or(|from| since >= from) && query.to.is_none_or(|to| since < to);
        if is_then && has(&query.pids, sample.pid) && has(&query.tids, sample.tid) {
            let sum = sums.entry((sample.stack, place != Where::Outside)).or_default();
            sum.samples += 1;
            sum.ns = sum.ns.saturating_add(sample.period);
            sum.kernel_ns = sum.kernel_ns.saturating_add(if sample.kernel { sample.period } else { 0 });
        }
    })?;
    Ok(Some(rows(trace, &sums)))
}

fn rows(trace: &Trace, sums: &HashMap<(StackId, bool), Sum>) -> SampledRow {
    let stacks = trace.names().stacks();
    let about = trace.manifest().samples.clone().unwrap_or_default();
    let mut all = SampledRow { hz: about.hz, dropped: about.dropped, incomplete: 0, ..SampledRow::default() };
    let mut by_name: HashMap<String, SampleRow> = HashMap::new();
    for ((stack, inside), sum) in sums {
        let frames = stacks.frames(*stack);
        all.samples += sum.samples;
        all.incomplete += if frames.iter().any(|f| f.kind == Kind::Missing) { sum.samples } else { 0 };
        let part = if *inside { &mut all.inside_ns } else { &mut all.outside_ns };
        *part = part.saturating_add(sum.ns);
        all.kernel_ns = all.kernel_ns.saturating_add(sum.kernel_ns);
        let mut met = HashSet::new();
        let names = frames.iter().filter(|frame| frame.kind != Kind::Missing).map(|frame| function_of(frame));
        let mut names: Vec<String> = names.collect();
        if names.is_empty() {
            names.push("[stack not known]".to_owned());
        }
        for (depth, name) in names.into_iter().enumerate() {
            // A function that calls itself counts once.
            if !met.insert(name.clone()) {
                continue;
            }
            let row = by_name.entry(name).or_default();
            row.total_ns = row.total_ns.saturating_add(sum.ns);
            if depth == 0 {
                row.samples += sum.samples;
                row.self_ns = row.self_ns.saturating_add(sum.ns);
                let part = if *inside { &mut row.inside_ns } else { &mut row.outside_ns };
                *part = part.saturating_add(sum.ns);
            }
        }
    }
    all.functions = by_name.into_iter().map(|(name, row)| SampleRow { name, ..row }).collect();
    all.sort();
    all
}
