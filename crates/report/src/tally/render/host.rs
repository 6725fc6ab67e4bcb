//! Tables of calls.

use std::fmt;

use super::{Renderer, errors, others, right, some};
use crate::tally::By;
use crate::tally::rows::HostRow;
use crate::text::{Column, Table};
use hetrace_trace::system::Shares;
use hetrace_trace::text::{count, duration, duration_f, percent, plural};

/// What threads did in calls: with a CPU, ready without one, waiting for something.
const STATES: [&str; 3] = ["On CPU", "Runnable", "Blocked"];

/// The same of a row. What was `taken` by tracing had a CPU, and is left out where it is of the time.
fn states(shares: Shares, taken: u64) -> [String; STATES.len()] {
    [shares.on_cpu_ns().saturating_sub(taken), shares.ready_ns, shares.blocked_ns].map(duration)
}

/// Tracing has a column where it took one part in so many of the time, or more.
const SHOWN_FROM: u64 = 100;

impl Renderer<'_> {
    /// What the tables are of, if that is not one whole trace.
    pub fn about(&mut self) -> fmt::Result {
        let t = self.tally;
        if !t.traces.is_empty() {
            self.heading(&[plural(t.traces.len() as u64, "trace")])?;
            let columns = vec![Column::left("Trace"), right("Duration"), right("Processes")];
            let mut table = Table::new(columns);
            for trace in &t.traces {
                table.row(vec![trace.title(), duration(trace.duration_ns), count(trace.processes)]);
            }
            self.narrow_table(&table)?;
        }
        Ok(())
    }

    pub fn host(&mut self) -> fmt::Result {
        let by = &self.tally.by;
        let by: Vec<By> = by.iter().copied().filter(|by| by.is_of_calls()).collect();
        let usual = by.is_empty() || (by.contains(&By::Name) && by.iter().all(|by| *by <= By::Name));
        if !usual {
            return self.grouped_host(&by);
        }
        for totals in &self.tally.apis {
            let rows: Vec<&HostRow> = self.tally.host.iter().filter(|r| r.api == totals.api).collect();
            if rows.is_empty() {
                continue;
            }
            self.heading(&[
                format!("{} API calls", if totals.title.is_empty() { &totals.api } else { &totals.title }),
                plural(totals.processes, "process"),
                plural(totals.threads, "thread"),
            ])?;
            let table = self.host_table(&[By::Name], &rows);
            self.table(&table)?;
        }
        Ok(())
    }

    fn grouped_host(&mut self, by: &[By]) -> fmt::Result {
        let rows: Vec<&HostRow> = self.tally.host.iter().collect();
        if rows.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = by.iter().map(|by| by.name()).collect();
        self.heading(&["API calls".to_owned(), format!("by {}", names.join(", "))])?;
        let table = self.host_table(by, &rows);
        self.table(&table)
    }

    fn host_table(&self, by: &[By], rows: &[&HostRow]) -> Table {
        // With calls inside calls, only the time outside of them adds up.
        let nested = self.options.extended || rows.iter().any(|r| r.self_ns != r.total_ns);
        let (self_ns, tracing_ns) = (sum(rows, |r| r.self_ns), sum(rows, |r| r.self_cost_ns));
        // Of a part of the calls the columns are those of all.
        let notable = self.tally.chosen.is_none() && tracing_ns >= self_ns / SHOWN_FROM;
        let tracing = tracing_ns > 0 && (self.options.extended || notable);
        let states = rows.iter().any(|r| r.states.is_some());
        let layout = Layout { by, nested, tracing, self_ns, states };
        let mut table = Table::new(self.host_columns(&layout));
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            table.row(self.host_cells(&layout, row));
        }
        if !hidden.is_empty() {
            table.row(self.host_sums(&layout, others(hidden.len()), hidden));
        }
        table.total(self.host_sums(&layout, "Total".to_owned(), rows));
        table
    }

    fn host_columns(&self, layout: &Layout<'_>) -> Vec<Column> {
        let mut columns: Vec<Column> = layout.by.iter().map(|by| Column::left(by.heading())).collect();
        columns.push(right("Time"));
        if layout.by.contains(&By::Layer) {
            // A layer's tax is its time without that of the layers that it called.
            columns.extend(["Tax", "Tax(%)", "Calls", "Tax/call"].map(right));
        } else {
            columns.extend(layout.nested.then(|| right("Self")));
            columns.extend(["Time(%)", "Calls", "Average", "Min", "Max"].map(right));
        }
        columns.extend(self.stats().iter().map(|heading| right(heading)));
        if layout.states {
            columns.extend(STATES.map(right));
        }
        columns.extend(["Error", "Error time"].map(right));
        if layout.tracing {
            columns.push(right("Tracing"));
        }
        columns
    }

    fn host_cells(&self, layout: &Layout<'_>, row: &HostRow) -> Vec<String> {
        let timed = row.calls > row.errors;
        let time = |text: String| if timed { text } else { String::new() };
        let name = |by: &By| match by {
            By::Name => row.name.clone(),
            By::Api => row.api.clone(),
            by => self.group(&row.group, *by),
        };
        let mut cells: Vec<String> = layout.by.iter().map(name).collect();
        let share = time(percent(row.self_ns, layout.self_ns));
        if layout.by.contains(&By::Layer) {
            // What a layer's own calls inside of each other took counts once, but not of a single function.
            let of_layer = !layout.by.contains(&By::Name);
            let nested = |n: u64| if of_layer { n } else { 0 };
            let waited = row.total_ns.saturating_sub(nested(row.nested_ns));
            let called = row.calls.saturating_sub(row.errors).saturating_sub(nested(row.nested_calls));
            cells.extend([time(duration(waited)), time(duration(row.self_ns)), share, count(row.calls)]);
            cells.push(time(duration_f(row.self_ns as f64 / called.max(1) as f64)));
        } else {
            cells.push(time(duration(row.total_ns)));
            cells.extend(layout.nested.then(|| time(duration(row.self_ns))));
            cells.extend([share, count(row.calls), time(duration_f(row.avg_ns))]);
            cells.push(time(bound("≤", row.added_up, row.min_ns)));
            cells.push(time(bound("≥", row.added_up, row.max_ns)));
        }
        let single = row.calls > row.errors.saturating_add(row.added_up);
        cells.extend(self.stats_cells(row.p50_ns, row.p99_ns, row.dev_ns, single));
        if layout.states {
            let taken = self.taken(row);
            cells.extend(row.states.map(|shares| states(shares, taken)).unwrap_or_default());
        }
        cells.extend([errors(row.errors), error_time(row.errors, row.error_ns)]);
        if layout.tracing {
            cells.push(time(duration(row.cost_ns)));
        }
        cells
    }

    /// What of a row's recorded time is tracing's and not in its times.
    fn taken(&self, row: &HostRow) -> u64 {
        let is_left_out = self.tally.tracing.as_ref().is_some_and(|tracing| tracing.left_out);
        if is_left_out { row.cost_ns } else { 0 }
    }

    /// The line with the sums over several rows.
    fn host_sums(&self, layout: &Layout<'_>, name: String, rows: &[&HostRow]) -> Vec<String> {
        let own = sum(rows, |r| r.self_ns);
        let mut cells = vec![String::new(); layout.by.len()];
        cells[0] = name;
        let layered = layout.by.contains(&By::Layer);
        cells.extend((layout.nested || layered).then(String::new));
        cells.extend([duration(own), percent(own, layout.self_ns), count(sum(rows, |r| r.calls))]);
        cells.extend(vec![String::new(); if layered { 1 } else { 3 } + self.stats().len()]);
        if layout.states {
            // What is in calls inside counts for both, so only without them is there a sum.
            let mut all = Shares::default();
            rows.iter().filter_map(|r| r.states.as_ref()).for_each(|one| all.add(one));
            let taken = rows.iter().filter(|r| r.states.is_some()).map(|row| self.taken(row)).sum();
            cells.extend(if layout.nested { Default::default() } else { states(all, taken) });
        }
        let failed = sum(rows, |r| r.errors);
        // As of the others, what is outside of calls inside adds up.
        cells.extend([errors(failed), error_time(failed, sum(rows, |r| r.error_self_ns))]);
        if layout.tracing {
            cells.push(duration(sum(rows, |r| r.self_cost_ns)));
        }
        cells
    }

    pub fn errors(&mut self) -> fmt::Result {
        if self.tally.errors.is_empty() {
            return Ok(());
        }
        let failed = self.tally.errors.iter().map(|r| r.calls).fold(0, u64::saturating_add);
        self.heading(&["Failed calls".to_owned(), plural(failed, "call")])?;
        let columns = vec![
            Column::left("Name"),
            Column::left("Error").alarm(),
            right("Calls"),
            right("Time"),
            Column::left("Text"),
        ];
        let mut table = Table::new(columns);
        let (shown, hidden) = self.cut(&self.tally.errors);
        for row in shown {
            let text = row.text.clone().unwrap_or_default();
            let time = some(row.total_ns, duration);
            table.row(vec![row.name.clone(), row.error.clone(), count(row.calls), time, text]);
        }
        if !hidden.is_empty() {
            let calls = hidden.iter().map(|r| r.calls).fold(0, u64::saturating_add);
            table.row(vec![others(hidden.len()), String::new(), count(calls)]);
        }
        self.table(&table)
    }

    /// What each layer costs by itself, if there are several.
    pub fn layers(&mut self) -> fmt::Result {
        let apis = &self.tally.apis;
        if apis.len() < 2 || self.tally.by.contains(&By::Layer) {
            return Ok(());
        }
        self.heading(&["Layers".to_owned(), "time of each without what it calls of the others".to_owned()])?;
        let mut columns = vec![Column::left("Layer")];
        columns.extend(["Self", "Self(%)", "Calls", "Per call", "Error", "Error time"].map(right));
        let mut table = Table::new(columns);
        let whole = apis.iter().map(|a| a.self_ns).fold(0, u64::saturating_add);
        for api in apis {
            let good = api.calls.saturating_sub(api.errors);
            table.row(vec![
                if api.title.is_empty() { api.api.clone() } else { api.title.clone() },
                duration(api.self_ns),
                percent(api.self_ns, whole),
                count(api.calls),
                if good > 0 { duration_f(api.self_ns as f64 / good as f64) } else { String::new() },
                errors(api.errors),
                some(api.error_self_ns, duration),
            ]);
        }
        self.table(&table)
    }
}

/// What a table of calls shows.
struct Layout<'r> {
    by: &'r [By],
    /// Time outside of calls inside has a column of its own.
    nested: bool,
    tracing: bool,
    /// What threads did has columns.
    states: bool,
    /// All of it, which is 100 %.
    self_ns: u64,
}

/// The shortest or the longest; if calls were added up, what it is at most or at least.
fn bound(sign: &str, added_up: u64, ns: u64) -> String {
    if added_up > 0 { format!("{sign}{}", duration(ns)) } else { duration(ns) }
}

/// Time in calls that failed, which no other time is with; nothing where none did.
fn error_time(errors: u64, ns: u64) -> String {
    if errors > 0 { duration(ns) } else { String::new() }
}

fn sum(rows: &[&HostRow], of: fn(&HostRow) -> u64) -> u64 {
    rows.iter().map(|r| of(r)).fold(0, u64::saturating_add)
}
