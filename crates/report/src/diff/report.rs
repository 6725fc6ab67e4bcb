//! Runs put side by side, to a report.

use super::align::{Aligned, Runs};
use super::cell::Cell;
use super::judge::verdict;
use super::profile::{Profile, RunRow};
use super::rows::{Change, Report, Row, SCHEMA, Table, WholeRow};
use super::stats::{CONFIDENCE, Interval, StudentT, TRIMMED, disturbed, typical};
use super::verdict::NotJudged;
use super::{By, Metric, MinChange, Options, Time};
use hetrace_trace::text::duration;

/// Tables when none is named.
const USUAL: [By; 3] = [By::Kernel, By::Copy, By::Path];

/// Returns what differs between the runs of A and those of B.
///
/// # Errors
/// When something must not get worse, and nobody can say whether it did.
pub fn diff(a: &[Profile], b: &[Profile], options: &Options) -> Result<Report, NotJudged> {
    let mut maker = Maker {
        runs: Runs::new(a, b, options),
        split: a.len(),
        net: a.iter().chain(b).all(|p| p.about.tracing_ns.is_some()),
        options,
        t: StudentT::default(),
        notes: Vec::new(),
    };
    let whole = maker.whole();
    let named = if options.by.is_empty() { USUAL.as_slice() } else { &options.by };
    let mut tables: Vec<Table> = named.iter().filter_map(|by| maker.table(*by)).collect();
    let lacks = |by: By| named.contains(&by) && tables.iter().all(|table| table.by != by);
    let (no_paths, no_sites) = (lacks(By::Path), lacks(By::Site));
    if no_sites {
        maker
            .notes
            .push("not all runs have stacks (hetrace run --stacks): call sites are not compared".to_owned());
    }
    if no_paths {
        maker.notes.push("a file of sums has no call paths: they are not compared".to_owned());
        if !named.contains(&By::Name) {
            tables.extend(maker.table(By::Name));
        }
    }
    maker.remarks(&whole, a, b);
    let about = |p: &Profile| RunRow { host_ns: maker.host_ns(&p.about), ..p.about.clone() };
    let abouts = |side: &[Profile]| side.iter().map(about).collect();
    let mut report = Report {
        schema: SCHEMA,
        a: abouts(a),
        b: abouts(b),
        time: options.time,
        per_process: options.per_process,
        filter: options.filter.clone(),
        confidence: CONFIDENCE,
        trimmed: TRIMMED,
        whole,
        tables,
        verdict: None,
        notes: maker.notes,
    };
    report.verdict = options.fail_on.as_ref().map(|fail_on| verdict(&report, fail_on)).transpose()?;
    Ok(report)
}

struct Maker<'p> {
    runs: Runs<'p>,
    /// Runs of A come before those of B.
    split: usize,
    /// Whether times of calls are without what tracing took: it must be known of all runs.
    net: bool,
    options: &'p Options,
    t: StudentT,
    notes: Vec<String>,
}

impl Maker<'_> {
    fn whole(&mut self) -> Vec<WholeRow> {
        let mut rows = Vec::new();
        for metric in [Metric::Wall, Metric::Device, Metric::Commands, Metric::Host] {
            let values = (0..self.runs.all.len()).map(|run| self.whole_of(metric, run));
            // A sum that one run lacks cannot be compared.
            let Some(values) = values.collect::<Option<Vec<f64>>>() else { continue };
            if metric != Metric::Wall && values.iter().all(|v| *v == 0.0) {
                continue;
            }
            let change = self.change(&values);
            rows.push(WholeRow { metric: metric.name(), change });
        }
        rows
    }

    fn whole_of(&self, metric: Metric, run: usize) -> Option<f64> {
        let about = &self.runs.all.get(run)?.about;
        Some(match metric {
            Metric::Wall => about.wall_ns as f64,
            Metric::Device => about.busy_ns? as f64 * self.scale(run, By::Kernel),
            Metric::Commands => about.commands_ns as f64 * self.scale(run, By::Kernel),
            Metric::Host => self.host_ns(about) as f64 * self.scale(run, By::Path),
            Metric::Rows => return None,
        })
    }

    /// Time in recorded calls.
    fn host_ns(&self, about: &RunRow) -> u64 {
        let tracing = about.tracing_ns.filter(|_| self.net).unwrap_or(0);
        about.host_ns.saturating_sub(tracing)
    }

    /// What sums of a run are multiplied with.
    fn scale(&self, run: usize, by: By) -> f64 {
        if !self.options.per_process {
            return 1.0;
        }
        let about = self.runs.all.get(run).map(|p| &p.about);
        let parts = about.map_or(1, |about| match by.is_of_calls() {
            true => about.processes,
            false => about.devices.iter().map(|d| d.count).sum(),
        });
        1.0 / parts.max(1) as f64
    }

    /// The difference between values of all runs, A's first.
    fn change(&mut self, values: &[f64]) -> Change {
        let (a_runs, b_runs) = values.split_at(self.split.min(values.len()));
        let (a, b) = (typical(a_runs), typical(b_runs));
        let interval = Interval::of(a_runs, b_runs, &mut self.t);
        let percent = |ns: f64| (a > 0.0).then(|| ns * 100.0 / a);
        // Digits beyond these are noise of the machine's arithmetic.
        let ends = interval.map(|i| [i.low, i.high].map(|ns| (ns * 1e3).round() / 1e3));
        Change {
            a_ns: a,
            b_ns: b,
            change_ns: b - a,
            change_percent: percent(b - a),
            low_ns: ends.map(|[low, _]| low),
            high_ns: ends.map(|[_, high]| high),
            low_percent: ends.and_then(|[low, _]| percent(low)),
            high_percent: ends.and_then(|[_, high]| percent(high)),
            significant: interval.is_some_and(|i| i.excludes_zero()),
            significant_of_all: false,
            a_runs_ns: a_runs.to_vec(),
            b_runs_ns: b_runs.to_vec(),
        }
    }

    fn table(&mut self, by: By) -> Option<Table> {
        let metric = if by.is_of_calls() { Metric::Host } else { Metric::Commands };
        let aligned = self.runs.rows(by)?;
        let whole: Vec<f64> = (0..self.runs.all.len()).filter_map(|run| self.whole_of(metric, run)).collect();
        let (whole_a, whole_b) = whole.split_at(self.split.min(whole.len()));
        let mut table = Table {
            by,
            a_ns: typical(whole_a),
            b_ns: typical(whole_b),
            intervals: 0,
            hidden: 0,
            rows: Vec::new(),
            appeared: Vec::new(),
            vanished: Vec::new(),
        };
        let mut rows: Vec<Row> = aligned.into_iter().map(|row| self.row(by, row, &table)).collect();
        // Rows that are left out had their chance, too.
        table.intervals = rows.iter().filter(|row| row.change.low_ns.is_some()).count();
        for row in &mut rows {
            row.change.significant_of_all = row.change.significant && self.among(row, table.intervals);
        }
        rows.sort_by(|x, y| {
            let size = |row: &Row| (row.change.change_ns.abs(), row.change.a_ns.max(row.change.b_ns));
            let (x_size, y_size) = (size(x), size(y));
            let order = y_size.0.total_cmp(&x_size.0).then(y_size.1.total_cmp(&x_size.1));
            order.then_with(|| x.what.cmp(&y.what))
        });
        for row in rows {
            if self.is_small(&row.change) {
                table.hidden += 1;
            } else if row.a_runs == 0 {
                table.appeared.push(row);
            } else if row.b_runs == 0 {
                table.vanished.push(row);
            } else {
                table.rows.push(row);
            }
        }
        Some(table)
    }

    /// Whether a row's difference is none of chance if none of so many may be.
    fn among(&mut self, row: &Row, rows: usize) -> bool {
        let interval = Interval::of(&row.change.a_runs_ns, &row.change.b_runs_ns, &mut self.t);
        interval.is_some_and(|i| i.excludes_zero_among(rows, &mut self.t))
    }

    fn is_small(&self, change: &Change) -> bool {
        match self.options.min_change {
            None => false,
            Some(MinChange::Ns(least)) => change.change_ns.abs() < least,
            Some(MinChange::Percent(least)) => change.change_percent.is_some_and(|p| p.abs() < least),
        }
    }

    fn row(&mut self, by: By, aligned: Aligned, table: &Table) -> Row {
        let whole_time = self.options.time == Time::Total && matches!(by, By::Path | By::Name | By::Site);
        let scales: Vec<f64> = (0..aligned.cells.len()).map(|run| self.scale(run, by)).collect();
        let each = |of: &dyn Fn(&Cell) -> u64| -> Vec<f64> {
            let cells = aligned.cells.iter().zip(&scales);
            cells.map(|(cell, scale)| cell.as_ref().map_or(0.0, |c| of(c) as f64 * scale)).collect()
        };
        let (split, net) = (self.split.min(aligned.cells.len()), self.net);
        let change = self.change(&each(&|c| c.time(whole_time, net)));
        let both = |values: Vec<f64>| (typical(&values[..split]), typical(&values[split..]));
        let (a_calls, b_calls) = both(each(&|c| c.calls));
        let (a_bytes, b_bytes) = both(each(&|c| c.bytes));
        // Those that have a time.
        let (a_timed, b_timed) = both(each(&|c| c.calls.saturating_sub(c.of_graphs)));
        let by_calls_ns = by_calls(&change, a_timed, b_timed);
        let part = |whole: f64| (whole != 0.0).then(|| change.change_ns * 100.0 / whole);
        let has = |cells: &[Option<Cell>]| cells.iter().filter(|cell| cell.is_some()).count();
        Row {
            of_whole_percent: part(table.a_ns),
            share_percent: part(table.b_ns - table.a_ns),
            a_calls,
            b_calls,
            by_calls_ns,
            by_time_ns: change.change_ns - by_calls_ns,
            a_bytes,
            b_bytes,
            a_runs: has(&aligned.cells[..split]),
            b_runs: has(&aligned.cells[split..]),
            what: aligned.what,
            symbol: aligned.symbol,
            change,
        }
    }

    /// What to know about the comparison.
    fn remarks(&mut self, whole: &[WholeRow], a: &[Profile], b: &[Profile]) {
        let all = || a.iter().chain(b).map(|p| &p.about);
        let mut notes = Vec::new();
        let fewest = a.len().min(b.len());
        if fewest == 1 {
            notes.push(
                "one run on a side: how much runs differ by chance is not known, so there are no intervals; \
                 record several runs of each"
                    .to_owned(),
            );
        } else if fewest == 2 {
            notes.push(
                "two runs on a side: intervals are wide; three or more of each show much more".to_owned(),
            );
        }
        notes.extend(disturbed_runs(whole, a, b));
        let mut counts: Vec<u64> = all().map(|run| run.processes).collect();
        counts.sort_unstable();
        counts.dedup();
        if let ([least, .., most], false) = (counts.as_slice(), self.options.per_process) {
            notes.push(format!(
                "runs have {least} to {most} processes, and sums are of all of them; --per-process divides"
            ));
        }
        let (on_a, on_b) = (device_names(a), device_names(b));
        if on_a != on_b && !on_a.is_empty() && !on_b.is_empty() {
            let how = if self.runs.by_device { "by name and device" } else { "by name alone" };
            notes.push(format!("A ran on {on_a}, B on {on_b}: commands are compared {how}"));
        }
        let tracing = |side: &[Profile]| {
            let took: Vec<u64> = side.iter().filter_map(|p| p.about.tracing_ns).collect();
            duration(took.iter().sum::<u64>() / took.len().max(1) as u64)
        };
        if self.net {
            let (of_a, of_b) = (tracing(a), tracing(b));
            notes.push(format!(
                "times of calls are without what tracing took inside them: {of_a} in A, {of_b} in B"
            ));
        } else if all().any(|run| run.tracing_ns.is_some()) {
            notes.push("what tracing took is not known of all runs: times of calls are with it".to_owned());
        }
        if all().any(|run| run.sampled) {
            notes.push(
                "only some launches were timed: times of commands are estimates, and busy times lack the others"
                    .to_owned(),
            );
        }
        let cut = all().map(|run| run.cut_paths).fold(0, u64::saturating_add);
        if cut > 0 && (self.options.by.is_empty() || self.options.by.contains(&By::Path)) {
            notes.push(format!("{cut} calls are too deep, or of too many paths: they are in rows of `…`"));
        }
        let sums_only = all().filter(|run| run.sums_only).count();
        if sums_only > 0 && sums_only < a.len() + b.len() {
            notes.push("files of sums lack own times of failed calls, which traces have".to_owned());
        }
        self.notes.splice(0..0, notes);
    }
}

/// The part of a change that other numbers of calls make: their difference times the
/// mean time of a call, which is the mean of both sides'. The rest is the difference
/// of the mean times, times the mean of the calls. Where one side has none, all of it
/// is of calls.
fn by_calls(change: &Change, a_calls: f64, b_calls: f64) -> f64 {
    if a_calls <= 0.0 || b_calls <= 0.0 {
        return change.change_ns;
    }
    (b_calls - a_calls) * f64::midpoint(change.a_ns / a_calls, change.b_ns / b_calls)
}

/// Which runs something else disturbed, by wall time and busy time of devices.
fn disturbed_runs(whole: &[WholeRow], a: &[Profile], b: &[Profile]) -> Vec<String> {
    let mut notes = Vec::new();
    for metric in [Metric::Wall, Metric::Device] {
        let Some(row) = whole.iter().find(|row| row.metric == metric.name()) else { continue };
        for (side, values, each) in
            [(a, &row.change.a_runs_ns, row.change.a_ns), (b, &row.change.b_runs_ns, row.change.b_ns)]
        {
            for at in disturbed(values) {
                let (Some(run), Some(ns)) = (side.get(at), values.get(at)) else { continue };
                let off = (ns - each) * 100.0 / each;
                notes.push(format!(
                    "{}: {} {off:+.0}% off what its side takes, so something else may have disturbed it; that is \
                     left out there",
                    run.about.run,
                    metric.title(),
                ));
            }
        }
    }
    notes
}

/// Returns the names of the devices that the runs of a side had commands on, each once.
fn device_names(side: &[Profile]) -> String {
    let names = side.iter().flat_map(|p| &p.about.devices).map(|d| d.name.as_str());
    let mut names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
