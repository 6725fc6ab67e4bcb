//! Probes in the program's code, and the ranges between two of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::rows::{ProbeRangeRow, ProbeRow};
use hetrace_trace::probes::Ranges;
use hetrace_trace::system::System;
use hetrace_trace::trace::Trace;

/// Returns the rows of probes, and of ranges between them.
pub(super) fn rows(trace: &Trace, system: Option<&System>) -> (Vec<ProbeRow>, Vec<ProbeRangeRow>) {
    system.map(|system| (probes(system), ranges(trace, system))).unwrap_or_default()
}

/// Probes in the program's code, those that were passed most often first.
fn probes(system: &System) -> Vec<ProbeRow> {
    let mut by_name: BTreeMap<&str, (u64, BTreeSet<u32>)> = BTreeMap::new();
    for hit in &system.hits {
        let (hits, threads) = by_name.entry(system.name(hit.name)).or_default();
        *hits += 1;
        threads.insert(hit.life);
    }
    let row = |(name, (hits, threads)): (&str, (u64, BTreeSet<u32>))| ProbeRow {
        name: name.to_owned(),
        hits,
        threads: threads.len() as u64,
    };
    let mut rows: Vec<ProbeRow> = by_name.into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse(row.hits));
    rows
}

/// The ranges between them, those with the most time first.
fn ranges(trace: &Trace, system: &System) -> Vec<ProbeRangeRow> {
    let found = Ranges::of(system, &trace.probe_pairs());
    let row = |name: &String| ProbeRangeRow { name: name.clone(), ..ProbeRangeRow::default() };
    let mut rows: Vec<ProbeRangeRow> = found.names.iter().map(row).collect();
    let mut met = HashSet::new();
    for range in &found.all {
        let Some(row) = rows.get_mut(range.name) else { continue };
        let ns = range.end.map(|end| end.saturating_sub(range.begin));
        let threads = u64::from(met.insert((range.name, range.life)));
        let (time, ranges, open) = (ns.unwrap_or(0), u64::from(ns.is_some()), u64::from(ns.is_none()));
        let name = String::new();
        row.add(&ProbeRangeRow { name, ranges, open, threads, total_ns: time, min_ns: time, max_ns: time });
    }
    rows.sort_by_key(|row| Reverse(row.total_ns));
    rows
}
