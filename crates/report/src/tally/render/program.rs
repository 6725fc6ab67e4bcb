//! Tables of what the program marked, of ranks, and of what devices reported.

use std::fmt;

use super::{Renderer, device::energy_cell, errors, others, some};
use crate::tally::rows::RangeRow;
use crate::text::{Column, Table};
use hetrace_trace::text::{bandwidth, bytes, count, duration, duration_f, energy, percent, plural, power};

impl Renderer<'_> {
    pub fn ranges(&mut self) -> fmt::Result {
        let rows = &self.tally.ranges;
        if rows.is_empty() {
            return Ok(());
        }
        let all = rows.iter().map(|r| r.calls).fold(0, u64::saturating_add);
        self.heading(&["Ranges".to_owned(), plural(all, "range")])?;
        let mut columns = vec![Column::left("Name")];
        columns.extend(["", "Time", "Count", "Average", "Min", "Max"].map(Column::right));
        columns.extend(self.stats().iter().map(|heading| Column::right(heading)));
        columns.extend(["Launched", "On devices", "Energy"].map(Column::right));
        let mut table = Table::new(columns);
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            let mut cells = vec![
                range_name(row),
                if row.style == "started" { "started".to_owned() } else { String::new() },
                duration(row.total_ns),
                count(row.calls),
                duration_f(row.avg_ns),
                duration(row.min_ns),
                duration(row.max_ns),
            ];
            cells.extend(self.stats_cells(row.p50_ns, row.p99_ns, row.dev_ns, true));
            cells.extend([
                some(row.commands, count),
                some(row.device_ns, duration),
                energy_cell(row.energy.as_ref()),
            ]);
            table.row(cells);
        }
        if !hidden.is_empty() {
            let sum = |of: fn(&RangeRow) -> u64| hidden.iter().map(of).fold(0, u64::saturating_add);
            let (time, all) = (duration(sum(|r| r.total_ns)), count(sum(|r| r.calls)));
            table.row(vec![others(hidden.len()), String::new(), time, all]);
        }
        self.narrow_table(&table)
    }

    pub fn collectives(&mut self) -> fmt::Result {
        let rows = &self.tally.collectives;
        if rows.is_empty() {
            return Ok(());
        }
        let mut named: Vec<&str> = self.tally.communicators.iter().map(|c| &*c.communicator).collect();
        named.sort_unstable();
        named.dedup();
        let ranks = plural(self.tally.communicators.len() as u64, "rank");
        self.heading(&["Collectives".to_owned(), plural(named.len() as u64, "communicator"), ranks])?;
        let mut columns = vec![Column::left("Operation"), Column::left("Comm."), Column::right("Ranks")];
        columns.push(Column::left("Type"));
        columns
            .extend(["Calls", "Grouped", "Bytes", "Time", "Alg. BW", "Bus BW", "Error"].map(Column::right));
        let mut table = Table::new(columns);
        for row in rows {
            let rate =
                |rate: Option<f64>| rate.map_or_else(String::new, |r| bandwidth(r as u64, 1_000_000_000));
            table.row(vec![
                row.operation.clone(),
                row.communicator.clone(),
                row.size.map_or_else(String::new, count),
                row.element.clone(),
                count(row.calls),
                some(row.grouped, count),
                some(row.bytes, bytes),
                some(row.total_ns, duration),
                rate(row.algorithm_bandwidth),
                rate(row.bus_bandwidth),
                errors(row.errors),
            ]);
        }
        self.narrow_table(&table)
    }

    pub fn unfinished_collectives(&mut self) -> fmt::Result {
        let rows = &self.tally.unfinished_collectives;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&["Unfinished collectives".to_owned(), "what each rank was in".to_owned()])?;
        let columns =
            ["Operation", "No.", "Comm.", "Rank", "Process", "Type", "Count", "Since", "State", "Behind it"];
        let mut columns = columns.map(Column::right);
        [0, 2, 5, 8].into_iter().for_each(|i| columns[i].left = true);
        let mut table = Table::new(columns.into());
        for row in rows {
            table.row(vec![
                row.operation.clone(),
                some(row.nth, count),
                row.communicator.clone(),
                match (row.rank, row.size) {
                    (Some(rank), Some(size)) => format!("{rank} of {size}"),
                    (Some(rank), None) => count(rank),
                    _ => String::new(),
                },
                row.pid.to_string(),
                row.element.clone(),
                count(row.count),
                duration(row.since_ns),
                match row.state.as_str() {
                    "calling" => "in the call".to_owned(),
                    "enqueued" => "enqueued, not ended".to_owned(),
                    "ended" => "ended; called none since".to_owned(),
                    // Which call they are of, nobody knows.
                    _ if self.tally.commands_under_way > 0 => "last one; no command ended".to_owned(),
                    _ => "last one; no commands known".to_owned(),
                },
                some(row.behind, count),
            ]);
        }
        self.narrow_table(&table)
    }

    pub fn telemetry(&mut self) -> fmt::Result {
        let rows = &self.tally.telemetry;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&["Telemetry".to_owned(), plural(rows.len() as u64, "device")])?;
        let mut columns = vec![Column::left("Device")];
        columns.extend(
            ["", "Energy", "Power", "Max", "Limit", "Busy", "Memory busy", "Memory", "Temp."]
                .map(Column::right),
        );
        let mut table = Table::new(columns);
        for row in rows {
            let rounded = |percent: Option<f64>| percent.map_or_else(String::new, |p| format!("{p:.0}%"));
            let memory = row.max_memory_used.map_or_else(String::new, |used| match row.memory_bytes {
                0 => bytes(used),
                all => format!("{} ({})", bytes(used), percent(used, all)),
            });
            table.row(vec![
                format!("{} {}", row.index, row.name),
                if row.used { String::new() } else { "not used".to_owned() },
                row.energy_mj.map_or_else(String::new, energy),
                row.mean_power_mw.map_or_else(String::new, power),
                row.max_power_mw.map_or_else(String::new, |mw| power(mw as f64)),
                some(row.power_limit_mw, |mw| power(mw as f64)),
                rounded(row.mean_gpu_percent),
                rounded(row.mean_memory_percent),
                memory,
                row.max_celsius.map_or_else(String::new, |c| format!("{c} °C")),
            ]);
        }
        self.narrow_table(&table)
    }
}

/// `domain/name`, and the category behind.
fn range_name(row: &RangeRow) -> String {
    let domain = if row.domain.is_empty() { String::new() } else { format!("{}/", row.domain) };
    let category = if row.category.is_empty() { String::new() } else { format!(" [{}]", row.category) };
    format!("{domain}{}{category}", row.name)
}
