//! Tables of commands.

use std::fmt;

use super::{Renderer, errors, others, right, some};
use crate::tally::By;
use crate::tally::rows::{DeviceRow, EnergyRow, LaunchRow, TrafficRow};
use crate::text::{Column, Table};
use hetrace_trace::demangle;
use hetrace_trace::text::{bandwidth, bytes, count, duration, duration_f, energy, error, percent, plural};

/// The sum of `of` over rows.
fn sum(rows: &[DeviceRow], of: fn(&DeviceRow) -> u64) -> u64 {
    rows.iter().map(of).fold(0, u64::saturating_add)
}

impl Renderer<'_> {
    fn name(&self, row: &DeviceRow) -> String {
        match &row.symbol {
            Some(symbol) if !self.options.full_names => demangle::short(symbol).into_owned(),
            _ => row.name.clone(),
        }
    }

    pub fn device(&mut self) -> fmt::Result {
        let rows = &self.tally.device;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&[
            "Device commands".to_owned(),
            plural(self.tally.devices, "device"),
            plural(self.tally.queues, "queue"),
        ])?;
        let by = self.device_dimensions();
        let named = by.contains(&By::Name);
        // Where there are some.
        let of_graphs = rows.iter().any(|row| row.of_graphs > 0);
        let mut table = Table::new(self.device_columns(&by, of_graphs));
        let total = sum(rows, |r| r.total_ns);
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            let timed = row.calls > row.untimed.saturating_add(row.errors);
            let time = |text: String| if timed { text } else { String::new() };
            let name = |by: &By| match by {
                By::Name => self.name(row),
                By::Api => row.api.clone(),
                by => self.group(&row.group, *by),
            };
            let mut cells: Vec<String> = by.iter().map(name).collect();
            cells.extend([
                time(duration(row.total_ns)),
                if named {
                    estimate_error(row.samples, row.total_error_ns, row.total_ns)
                } else {
                    String::new()
                },
                time(percent(row.total_ns, total)),
                count(row.calls),
            ]);
            cells.extend(of_graphs.then(|| some(row.of_graphs, count)));
            cells.extend([
                time(duration_f(row.avg_ns)),
                time(duration(row.min_ns)),
                time(duration(row.max_ns)),
            ]);
            cells.extend(self.stats_cells(row.p50_ns, row.p99_ns, row.dev_ns, timed));
            cells.extend([some(row.in_graph, count), errors(row.errors)]);
            table.row(cells);
        }
        let sums = |name: String, rows: &[DeviceRow]| {
            let own = sum(rows, |r| r.total_ns);
            let mut cells = vec![String::new(); by.len()];
            cells[0] = name;
            cells.extend([duration(own), String::new(), percent(own, total), count(sum(rows, |r| r.calls))]);
            cells.extend(of_graphs.then(|| some(sum(rows, |r| r.of_graphs), count)));
            cells.extend(vec![String::new(); 3 + self.stats().len()]);
            cells.extend([some(sum(rows, |r| r.in_graph), count), errors(sum(rows, |r| r.errors))]);
            cells
        };
        if !hidden.is_empty() {
            table.row(sums(others(hidden.len()), hidden));
        }
        table.total(sums("Total".to_owned(), rows));
        // Only names of functions have no end.
        if by.first() == Some(&By::Name) { self.narrow_table(&table) } else { self.table(&table) }
    }

    /// The columns of that table; that of graphs where some commands are theirs.
    fn device_columns(&self, by: &[By], of_graphs: bool) -> Vec<Column> {
        let mut columns: Vec<Column> = by.iter().map(|by| Column::left(by.heading())).collect();
        columns.extend(["Time", "±", "Time(%)", "Calls"].map(right));
        columns.extend(of_graphs.then(|| right(OF_GRAPHS)));
        columns.extend(["Average", "Min", "Max"].map(right));
        columns.extend(self.stats().iter().map(|heading| right(heading)));
        columns.extend(["In graphs", "Error"].map(right));
        columns
    }

    /// What rows of commands are grouped by; never nothing.
    fn device_dimensions(&self) -> Vec<By> {
        let mut by = self.tally.by.clone();
        if by.is_empty() {
            by.push(By::Name);
        }
        // Rows say so themselves if rows are grouped by device and queue, too.
        let first = self.tally.device.first();
        let more = [By::Device, By::Queue].into_iter();
        let shown = more.filter(|by| first.is_some_and(|row| row.group.get(*by).is_some()));
        let shown: Vec<By> = shown.filter(|more| !by.contains(more)).collect();
        by.extend(shown);
        by
    }

    /// How kernels were launched, and what that takes.
    pub fn kernels(&mut self) -> fmt::Result {
        let known = |l: &LaunchRow| l.registers > 0 || l.shared_static > 0 || !l.items.is_empty();
        let shown = |r: &&DeviceRow| r.energy.is_some() || r.launch.as_ref().is_some_and(known);
        let rows: Vec<&DeviceRow> = self.tally.device.iter().filter(shown).collect();
        let rows = self.cut(&rows).0;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&["Kernels".to_owned(), "most frequent launch configuration".to_owned()])?;
        let mut columns = vec![Column::left("Name")];
        columns.extend(
            ["Global", "Grid", "Block", "Cluster", "Regs", "Shared", "Local", "Occupancy", "Energy"]
                .map(right),
        );
        let mut table = Table::new(columns);
        for row in rows {
            let launch = row.launch.as_ref();
            let of = |get: fn(&LaunchRow) -> String| launch.map_or_else(String::new, get);
            table.row(vec![
                self.name(row),
                of(|l| sizes(&l.items)),
                of(|l| sizes(&l.grid)),
                of(|l| if l.block.is_empty() { AUTO.to_owned() } else { sizes(&l.block) }),
                of(|l| sizes(&l.cluster)),
                of(|l| some(l.registers, count)),
                of(shared),
                of(|l| some(l.local, count)),
                of(occupancy),
                energy_cell(row.energy.as_ref()),
            ]);
        }
        self.narrow_table(&table)
    }

    pub fn traffic(&mut self) -> fmt::Result {
        let rows = &self.tally.traffic;
        if rows.is_empty() {
            return Ok(());
        }
        let moved = rows.iter().map(|r| r.bytes).fold(0, u64::saturating_add);
        self.heading(&["Memory traffic".to_owned(), bytes(moved)])?;
        let by: Vec<By> =
            self.tally.by.iter().copied().filter(|by| *by != By::Name && *by != By::Api).collect();
        let mut columns = vec![Column::left("Name")];
        columns.extend(by.iter().map(|by| Column::left(by.heading())));
        columns.extend(["Bytes", "Bandwidth", "Time", "±", "Calls"].map(right));
        let of_graphs = rows.iter().any(|row| row.of_graphs > 0);
        columns.extend(of_graphs.then(|| right(OF_GRAPHS)));
        columns.extend(["Average", "Min", "Max"].map(right));
        columns.extend(self.stats().iter().map(|heading| right(heading)));
        columns.extend(["Error", "Failed bytes"].map(right));
        let mut table = Table::new(columns);
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            let timed = row.bytes_per_second.is_some();
            let time = |text: String| if timed { text } else { String::new() };
            let rate = row.bytes_per_second.unwrap_or(0.0);
            let mut cells = vec![traffic_name(row)];
            cells.extend(by.iter().map(|by| self.group(&row.group, *by)));
            cells.extend([
                bytes(row.bytes),
                // Where host and device share memory, a map moves nothing.
                time(if row.name == MAP { String::new() } else { bandwidth(rate as u64, 1_000_000_000) }),
                time(duration(row.total_ns)),
                estimate_error(row.samples, row.total_error_ns, row.total_ns),
                count(row.calls),
            ]);
            cells.extend(of_graphs.then(|| some(row.of_graphs, count)));
            cells.extend([
                time(duration_f(row.avg_ns)),
                time(duration(row.min_ns)),
                time(duration(row.max_ns)),
            ]);
            cells.extend(self.stats_cells(row.p50_ns, row.p99_ns, row.dev_ns, timed));
            cells.extend([errors(row.errors), some(row.failed_bytes, bytes)]);
            table.row(cells);
        }
        if !hidden.is_empty() {
            let sum = |of: fn(&TrafficRow) -> u64| hidden.iter().map(of).fold(0, u64::saturating_add);
            let mut cells = vec![others(hidden.len())];
            cells.extend(vec![String::new(); by.len()]);
            let calls = count(sum(|r| r.calls));
            let time = duration(sum(|r| r.total_ns));
            cells.extend([bytes(sum(|r| r.bytes)), String::new(), time, String::new(), calls]);
            cells.extend(of_graphs.then(|| some(sum(|r| r.of_graphs), count)));
            cells.extend(vec![String::new(); 3 + self.stats().len()]);
            cells.extend([errors(sum(|r| r.errors)), some(sum(|r| r.failed_bytes), bytes)]);
            table.row(cells);
        }
        if by.is_empty() { self.narrow_table(&table) } else { self.table(&table) }
    }
}

/// Heading of calls that have no time of their own: nodes of graphs that were timed as a whole.
const OF_GRAPHS: &str = "Of graphs";

/// In the place of a block's size that the program left to the API.
const AUTO: &str = "auto";

/// Commands of which it is not known whether they moved their bytes.
pub(super) const MAP: &str = "map";

/// `copy device → pageable`.
fn traffic_name(row: &TrafficRow) -> String {
    match (&row.from, &row.to) {
        (None, None) => row.name.clone(),
        (Some(from), None) => format!("{} {from} →", row.name),
        (None, Some(to)) => format!("{} → {to}", row.name),
        (Some(from), Some(to)) => format!("{} {from} → {to}", row.name),
    }
}

/// How far the total may be from the truth, if it is an estimate.
fn estimate_error(samples: Option<u64>, error_ns: Option<f64>, total_ns: u64) -> String {
    match (samples, error_ns) {
        (None, None) => String::new(),
        (Some(_), None) => "±?".to_owned(),
        (_, Some(ns)) => error(ns, total_ns as f64),
    }
}

/// `128x2`: without the dimensions that have nothing behind.
fn sizes(all: &[u64]) -> String {
    let last = all.iter().rposition(|n| *n != 1).unwrap_or(0);
    let sizes: Vec<String> = all.iter().take(last + 1).map(|n| count(*n)).collect();
    sizes.join("x")
}

/// Bytes that the code asks for, and the launch beside them.
fn shared(launch: &LaunchRow) -> String {
    match (launch.shared_static, launch.shared_dynamic) {
        (0, 0) => String::new(),
        (own, 0) => count(own),
        (own, more) => format!("{own}+{more}"),
    }
}

fn occupancy(launch: &LaunchRow) -> String {
    let Some(occupancy) = &launch.occupancy else { return String::new() };
    // What is full is not kept from more.
    match occupancy.percent < 100.0 {
        true => format!("{:.1}% ({})", occupancy.percent, occupancy.limiter),
        false => "100%".to_owned(),
    }
}

/// `1.23 J ±2.0%`.
pub(super) fn energy_cell(row: Option<&EnergyRow>) -> String {
    row.map_or_else(String::new, |row| {
        format!("{} {}", energy(row.millijoules), error(row.error_mj, row.millijoules))
    })
}
