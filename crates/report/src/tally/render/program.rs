//! Tables of what the program marked, of ranks, and of what devices reported.

use std::fmt;

use super::{Renderer, device::energy_cell, errors, others, right, some};
use crate::tally::rows::{HostTelemetryRow, ProbeRangeRow, RangeRow};
use crate::text::{Column, Table};
use hetrace_trace::ranges::counter_title;
use hetrace_trace::telemetry::HOST;
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
        columns.extend(["", "Time", "Count", "Average", "Min", "Max"].map(right));
        columns.extend(self.stats().iter().map(|heading| right(heading)));
        columns.extend(["Launched", "On devices", "Energy"].map(right));
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

    pub fn counters(&mut self) -> fmt::Result {
        let rows = &self.tally.counters;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&["Counters".to_owned(), plural(rows.len() as u64, "counter")])?;
        let several = rows.iter().any(|row| row.pid != rows[0].pid);
        let unknown = rows.iter().any(|row| row.unknown > 0);
        let mut columns = vec![Column::left("Name")];
        if several {
            columns.push(right("Process"));
        }
        columns.extend(["Values", "First", "Last", "Min", "Max", "Average"].map(right));
        if unknown {
            columns.push(right("No number"));
        }
        let mut table = Table::new(columns);
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            let mut cells = vec![counter_title(&row.domain, &row.name)];
            if several {
                cells.push(row.pid.to_string());
            }
            cells.push(count(row.values));
            cells.extend(
                [row.first, row.last, row.min, row.max, row.mean]
                    .map(|value| value.map_or(String::new(), number)),
            );
            if unknown {
                cells.push(some(row.unknown, count));
            }
            table.row(cells);
        }
        if !hidden.is_empty() {
            table.row(vec![others(hidden.len())]);
        }
        self.narrow_table(&table)
    }

    pub fn probes(&mut self) -> fmt::Result {
        let rows = &self.tally.probes;
        if rows.is_empty() {
            return Ok(());
        }
        let all = rows.iter().map(|row| row.hits).fold(0, u64::saturating_add);
        self.heading(&["Probes in the program's code".to_owned(), plural(all, "hit")])?;
        let mut table = Table::new(vec![Column::left("Name"), right("Hits"), right("Threads")]);
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            table.row(vec![row.name.clone(), count(row.hits), count(row.threads)]);
        }
        if !hidden.is_empty() {
            let sum = hidden.iter().map(|row| row.hits).fold(0, u64::saturating_add);
            table.row(vec![others(hidden.len()), count(sum)]);
        }
        self.narrow_table(&table)
    }

    pub fn probe_ranges(&mut self) -> fmt::Result {
        let rows = &self.tally.probe_ranges;
        if rows.is_empty() {
            return Ok(());
        }
        let all = rows.iter().map(|row| row.ranges).fold(0, u64::saturating_add);
        self.heading(&["Ranges between probes".to_owned(), plural(all, "range")])?;
        let mut columns = vec![Column::left("Name")];
        columns.extend(["Time", "Ranges", "Average", "Min", "Max", "Threads", "Open"].map(right));
        let mut table = Table::new(columns);
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            let average = row.total_ns.checked_div(row.ranges).unwrap_or(0);
            let open = if row.open == 0 { String::new() } else { count(row.open) };
            let times = [average, row.min_ns, row.max_ns].map(duration);
            let mut cells = vec![row.name.clone(), duration(row.total_ns), count(row.ranges)];
            cells.extend(times.into_iter().chain([count(row.threads), open]));
            table.row(cells);
        }
        if !hidden.is_empty() {
            let sum = |of: fn(&ProbeRangeRow) -> u64| hidden.iter().map(of).fold(0, u64::saturating_add);
            table.row(vec![others(hidden.len()), duration(sum(|r| r.total_ns)), count(sum(|r| r.ranges))]);
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
        let mut columns = vec![Column::left("Operation"), Column::left("Comm."), right("Ranks")];
        columns.push(Column::left("Type"));
        columns.extend(["Calls", "Grouped", "Bytes", "Time", "Alg. BW", "Bus BW", "Error"].map(right));
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
        let mut columns = columns.map(right);
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
                    _ if self.tally.commands_in_flight > 0 => "last one; no command ended".to_owned(),
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
            ["", "Energy", "Power", "Max", "Limit", "Busy", "Memory busy", "Memory", "Temp."].map(right),
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

    pub fn host_telemetry(&mut self) -> fmt::Result {
        let rows = &self.tally.host_telemetry;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&["Host".to_owned()])?;
        let mut columns = vec![Column::left("Part"), Column::left("")];
        columns.extend(["Mean", "Min", "Max", "In all"].map(right));
        let mut table = Table::new(columns);
        for (row, label) in host_rows(rows) {
            let value = |value: f64| host_value(row, value);
            table.row(vec![
                row.device.clone(),
                label,
                value(row.mean),
                value(row.min),
                value(row.max),
                row.total.map_or_else(String::new, |total| match row.quantity.as_str() {
                    ENERGY => energy(total),
                    _ => bytes(total.round() as u64),
                }),
            ]);
        }
        self.narrow_table(&table)
    }
}

const ENERGY: &str = "energy";

/// The rows of the host that a person wants to see, and what they are of: all of the machine, of its processors the
/// busiest, and what was not idle all the time.
fn host_rows(rows: &[HostTelemetryRow]) -> impl Iterator<Item = (&HostTelemetryRow, String)> {
    let single = |row: &&HostTelemetryRow| row.quantity == "cpu" && row.device != HOST;
    let busy = rows.iter().filter(single).filter(|row| row.value == "busy");
    let processors = busy.clone().count();
    let busiest = busy.max_by(|a, b| a.mean.total_cmp(&b.mean)).map(|row| row.device.as_str());
    rows.iter().filter_map(move |row| {
        let whole = row.device == HOST;
        let of_busiest = busiest == Some(&row.device);
        let label = match (row.quantity.as_str(), row.value.as_str()) {
            ("cpu", "busy") if whole => "processors busy".to_owned(),
            ("cpu", "busy") if of_busiest => format!("busiest of {}", plural(processors as u64, "processor")),
            ("cpu", "iowait") if whole && row.max > 0.0 => "processors waiting for I/O".to_owned(),
            ("cpu", "steal") if whole && row.max > 0.0 => "processors taken by other machines".to_owned(),
            ("frequency", _) if of_busiest => "frequency".to_owned(),
            ("host_memory", "used") => "memory used".to_owned(),
            ("host_memory", "swap") if row.max > 0.0 => "swap used".to_owned(),
            ("resident", _) => "memory of the program".to_owned(),
            ("pressure", what) if row.max > 0.0 => format!("waiting for {what}"),
            ("disk", what) if row.max > 0.0 => what.to_owned(),
            ("network", "tx") if row.max > 0.0 => "sent".to_owned(),
            ("network", "rx") if row.max > 0.0 => "received".to_owned(),
            (ENERGY, _) => String::new(),
            _ => return None,
        };
        Some((row, label))
    })
}

/// A value of the host with its unit.
fn host_value(row: &HostTelemetryRow, value: f64) -> String {
    match row.unit.as_str() {
        "mCPU" if row.device == HOST => format!("{:.2}", value / 1000.0),
        "mCPU" | "‰" => format!("{:.0}%", value / 10.0),
        "kHz" => format!("{:.0} MHz", value / 1000.0),
        "B/s" => format!("{}/s", bytes(value.round() as u64)),
        "B" => bytes(value.round() as u64),
        "mW" => power(value),
        _ => format!("{value}"),
    }
}

/// `domain/name`, and the category behind.
fn range_name(row: &RangeRow) -> String {
    let domain = if row.domain.is_empty() { String::new() } else { format!("{}/", row.domain) };
    let category = if row.category.is_empty() { String::new() } else { format!(" [{}]", row.category) };
    format!("{domain}{}{category}", row.name)
}

/// A value of a program's counter: whole if it is, with six digits else.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let digits = 5_i32.saturating_sub(value.abs().log10().floor() as i32);
    match usize::try_from(digits) {
        Ok(digits) if digits <= 12 => format!("{value:.digits$}"),
        _ => format!("{value:.5e}"),
    }
}
