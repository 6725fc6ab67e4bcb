//! What became of a budget for recording.

use std::collections::BTreeMap;

use super::rows::{BudgetRow, DeviceRow, LevelRow, Tally};
use hetrace_trace::budget::{self, Level};
use hetrace_trace::trace::{Thread, Trace};

impl BudgetRow {
    /// Of a trace; none if it had no budget. What the tables say is left to [`Self::complete`].
    pub(super) fn of(trace: &Trace, threads: &[Thread]) -> Option<Self> {
        let stepped = budget::read(trace);
        let steps = stepped.iter().flat_map(|thread| &thread.steps);
        let in_steps = steps.map(|step| step.step.budget_ppm).max().map(|ppm| f64::from(ppm) / 1e4);
        let percent = trace.manifest().max_overhead.or(in_steps)?;
        let mut row = Self { percent, threads: threads.len() as u64, ..Self::default() };
        let mut levels = BTreeMap::<Level, u64>::new();
        for thread in stepped.iter().filter(|thread| thread.stepped_down()) {
            row.stepped_threads += 1;
            for (level, ns) in thread.levels() {
                let sum = levels.entry(level).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        let level = |(Level { summed, one_in }, ns)| LevelRow { one_in, added_up: summed, ns };
        row.levels = levels.into_iter().map(level).collect();
        for (ns, ppm) in stepped.iter().filter_map(budget::SteppedThread::over) {
            row.over_ns = row.over_ns.saturating_add(ns);
            row.over_percent = greater(row.over_percent, Some(f64::from(ppm) / 1e4));
        }
        Some(row)
    }

    /// Adds that of other traces.
    pub(super) fn add(&mut self, other: &Self) {
        self.percent = self.percent.max(other.percent);
        self.threads = self.threads.saturating_add(other.threads);
        self.stepped_threads = self.stepped_threads.saturating_add(other.stepped_threads);
        self.over_ns = self.over_ns.saturating_add(other.over_ns);
        self.over_percent = greater(self.over_percent, other.over_percent);
        for level in &other.levels {
            let like =
                |known: &&mut LevelRow| (known.one_in, known.added_up) == (level.one_in, level.added_up);
            match self.levels.iter_mut().find(like) {
                Some(known) => known.ns = known.ns.saturating_add(level.ns),
                None => self.levels.push(level.clone()),
            }
        }
        self.levels.sort_by_key(|level| (level.added_up, level.one_in));
    }

    /// With what the tables say.
    pub(super) fn complete(&mut self, tables: &Tally) {
        let sum = |of: fn(&DeviceRow) -> u64| tables.device.iter().map(of).fold(0, u64::saturating_add);
        let timed = |row: &DeviceRow| {
            row.samples.unwrap_or(row.calls.saturating_sub(row.untimed).saturating_sub(row.errors))
        };
        self.commands = sum(|row| row.calls);
        self.timed_commands = sum(timed);
        self.added_up_calls = tables.host.iter().map(|row| row.added_up).fold(0, u64::saturating_add);
        let estimates = || tables.device.iter().filter(|row| row.samples.is_some());
        self.unknown_errors = estimates().filter(|row| row.total_error_ns.is_none()).count() as u64;
        let error = estimates().filter_map(|row| row.total_error_ns).reduce(f64::hypot);
        let total = sum(|row| row.total_ns);
        self.device_error_percent =
            error.filter(|_| self.unknown_errors == 0 && total > 0).map(|error| error / total as f64 * 100.0);
    }
}

fn greater(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}
