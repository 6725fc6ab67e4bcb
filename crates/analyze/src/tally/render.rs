//! The tables as text.

use std::fmt::{self, Write};

use super::rows::{HostRow, Tally};
use crate::text::{Column, Style, Table, bandwidth, bytes, count, duration, duration_f, percent, plural};
use crate::trace::Exit;

/// How the text should look.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOptions {
    /// ANSI colours.
    pub colour: bool,
    /// Also show times of failed calls, and time outside of inner calls.
    pub extended: bool,
    /// Columns of the terminal: names give way to fit in.
    pub width: Option<usize>,
    /// The longest name; longer ones are cut.
    pub max_name: Option<usize>,
}

impl Tally {
    /// All tables as text.
    pub fn render(&self, options: &TextOptions) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text, options);
        text
    }

    /// Writes all tables as text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, options: &TextOptions) -> fmt::Result {
        let mut renderer =
            Renderer { tally: self, out, options, style: Style { colour: options.colour }, blocks: 0 };
        renderer.host()?;
        renderer.errors()?;
        renderer.device()?;
        renderer.traffic()?;
        if renderer.blocks == 0 {
            writeln!(renderer.out, "No calls and no commands were recorded.")?;
        }
        renderer.truth()
    }
}

struct Renderer<'a> {
    tally: &'a Tally,
    out: &'a mut dyn Write,
    options: &'a TextOptions,
    style: Style,
    /// Tables written so far.
    blocks: u32,
}

impl Renderer<'_> {
    fn heading(&mut self, parts: &[String]) -> fmt::Result {
        if self.blocks > 0 {
            writeln!(self.out)?;
        }
        self.blocks += 1;
        writeln!(self.out, "{}", self.style.bold(&parts.join(" | ")))
    }

    fn table(&mut self, table: &Table) -> fmt::Result {
        let TextOptions { width, max_name, .. } = *self.options;
        table.write(self.out, self.style, width, max_name)
    }

    fn host(&mut self) -> fmt::Result {
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
            let table = self.host_table(&rows, totals.self_ns);
            self.table(&table)?;
        }
        Ok(())
    }

    fn host_table(&self, rows: &[&HostRow], self_ns: u64) -> Table {
        // With calls inside calls, only the time outside of them adds up.
        let nested = self.options.extended || rows.iter().any(|r| r.self_ns != r.total_ns);
        let error_time = self.options.extended;
        let mut columns = vec![Column::left("Name"), Column::right("Time")];
        if nested {
            columns.push(Column::right("Self"));
        }
        columns.extend(["Time(%)", "Calls", "Average", "Min", "Max", "Error"].map(Column::right));
        if error_time {
            columns.push(Column::right("Error time"));
        }
        let mut table = Table::new(columns);
        for row in rows {
            let timed = row.calls > row.errors;
            let time = |text: String| if timed { text } else { String::new() };
            let mut cells = vec![row.name.clone(), time(duration(row.total_ns))];
            if nested {
                cells.push(time(duration(row.self_ns)));
            }
            cells.extend([
                time(percent(row.self_ns, self_ns)),
                count(row.calls),
                time(duration_f(row.avg_ns)),
                time(duration(row.min_ns)),
                time(duration(row.max_ns)),
                errors(row.errors),
            ]);
            if error_time {
                cells.push(if row.errors > 0 { duration(row.error_ns) } else { String::new() });
            }
            table.row(cells);
        }
        let sum = |of: fn(&HostRow) -> u64| rows.iter().map(|r| of(r)).fold(0, u64::saturating_add);
        let mut cells = vec!["Total".to_owned()];
        if nested {
            cells.push(String::new());
        }
        cells.extend([duration(self_ns), percent(self_ns, self_ns), count(sum(|r| r.calls))]);
        cells.extend([String::new(), String::new(), String::new(), errors(sum(|r| r.errors))]);
        table.total(cells);
        table
    }

    fn errors(&mut self) -> fmt::Result {
        if self.tally.errors.is_empty() {
            return Ok(());
        }
        let failed = self.tally.errors.iter().map(|r| r.calls).fold(0, u64::saturating_add);
        self.heading(&["Failed calls".to_owned(), plural(failed, "call")])?;
        let columns = vec![Column::left("Name"), Column::left("Error"), Column::right("Calls")];
        let mut table = Table::new(columns);
        for row in &self.tally.errors {
            table.row(vec![row.name.clone(), row.error.clone(), count(row.calls)]);
        }
        self.table(&table)
    }

    fn device(&mut self) -> fmt::Result {
        let rows = &self.tally.device;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&[
            "Device commands".to_owned(),
            plural(self.tally.devices, "device"),
            plural(self.tally.queues, "queue"),
        ])?;
        let extended = rows.iter().any(|r| r.device.is_some());
        let mut columns = vec![Column::left("Name")];
        if extended {
            columns.extend([Column::left("Device"), Column::left("Queue")]);
        }
        columns.extend(
            ["Time", "Time(%)", "Calls", "Average", "Min", "Max", "Bytes", "Error"].map(Column::right),
        );
        let mut table = Table::new(columns);
        let sum = |of: fn(&super::DeviceRow) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
        let total = sum(|r| r.total_ns);
        for row in rows {
            let timed = row.calls > row.untimed.saturating_add(row.errors);
            let time = |text: String| if timed { text } else { String::new() };
            let mut cells = vec![row.name.clone()];
            if extended {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                cells.extend([text(&row.device), text(&row.queue)]);
            }
            cells.extend([
                time(duration(row.total_ns)),
                time(percent(row.total_ns, total)),
                count(row.calls),
                time(duration_f(row.avg_ns)),
                time(duration(row.min_ns)),
                time(duration(row.max_ns)),
                if row.bytes > 0 { bytes(row.bytes) } else { String::new() },
                errors(row.errors),
            ]);
            table.row(cells);
        }
        let mut cells = vec!["Total".to_owned()];
        if extended {
            cells.extend([String::new(), String::new()]);
        }
        cells.extend([duration(total), percent(total, total), count(sum(|r| r.calls))]);
        let moved = sum(|r| r.bytes);
        cells.extend([String::new(), String::new(), String::new()]);
        cells.push(if moved > 0 { bytes(moved) } else { String::new() });
        cells.push(errors(sum(|r| r.errors)));
        table.total(cells);
        self.table(&table)
    }

    fn traffic(&mut self) -> fmt::Result {
        let rows = &self.tally.traffic;
        if rows.is_empty() {
            return Ok(());
        }
        let moved = rows.iter().map(|r| r.bytes).fold(0, u64::saturating_add);
        self.heading(&["Memory traffic".to_owned(), bytes(moved)])?;
        let mut columns = vec![Column::left("Name")];
        columns.extend(["Bytes", "Bandwidth", "Time", "Calls", "Average", "Min", "Max"].map(Column::right));
        let mut table = Table::new(columns);
        for row in rows {
            let timed = row.bytes_per_second.is_some();
            let time = |text: String| if timed { text } else { String::new() };
            let rate = row.bytes_per_second.unwrap_or(0.0);
            table.row(vec![
                row.name.clone(),
                bytes(row.bytes),
                time(bandwidth(rate as u64, 1_000_000_000)),
                time(duration(row.total_ns)),
                count(row.calls),
                time(duration_f(row.avg_ns)),
                time(duration(row.min_ns)),
                time(duration(row.max_ns)),
            ]);
        }
        self.table(&table)
    }

    /// What the tables do not show, and how far to trust them.
    fn truth(&mut self) -> fmt::Result {
        let red = self.warnings();
        let notes = self.remarks();
        if red.is_empty() && notes.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        for line in red {
            writeln!(self.out, "{}", self.style.red(&line))?;
        }
        for line in notes {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    fn warnings(&self) -> Vec<String> {
        let t = self.tally;
        let mut lines = Vec::new();
        if t.lost_events > 0 || t.lost_calls > 0 {
            let calls = match t.lost_calls {
                0 => String::new(),
                n => format!(" ({} not, or not wholly, recorded)", plural(n, "call")),
            };
            lines.push(format!(
                "LOST: {}{calls}: the program was faster than the recording",
                plural(t.lost_events, "event")
            ));
        }
        if t.lost_device_commands > 0 {
            lines.push(format!("LOST: {}", plural(t.lost_device_commands, "device command")));
        }
        if t.unwritten_bytes > 0 {
            lines.push(format!("LOST: {} that could not be written to disk", bytes(t.unwritten_bytes)));
        }
        if t.damaged_bytes > 0 {
            lines.push(format!("LOST: {} of damaged records", bytes(t.damaged_bytes)));
        }
        if t.lost_packets > 0 {
            lines.push(format!("LOST: {} of the streams", plural(t.lost_packets, "packet")));
        }
        if let Some(at) = t.cut_at_ns {
            lines.push(format!(
                "CUT: the trace is whole up to {} of {} only",
                duration(at),
                duration(t.duration_ns)
            ));
        }
        lines.extend(t.damages.iter().map(|d| format!("DAMAGED: {d}")));
        let more = t.damaged.saturating_sub(t.damages.len() as u64);
        if more > 0 {
            lines.push(format!("DAMAGED: {more} more places"));
        }
        if t.unfinished_calls > 0 {
            let named = t.unfinished.iter().take(8).map(|r| match r.calls {
                1 => r.name.clone(),
                n => format!("{} ({n})", r.name),
            });
            let mut named: Vec<String> = named.collect();
            if t.unfinished.len() > named.len() {
                named.push("…".to_owned());
            }
            let calls = plural(t.unfinished_calls, "call");
            lines.push(format!("UNFINISHED: {calls} without an end: {}", named.join(", ")));
        }
        if t.orphaned_exits > 0 {
            let ends = plural(t.orphaned_exits, "end");
            lines.push(format!("INCOMPLETE: {ends} of calls without a beginning, in no table"));
        }
        if t.manifest_missing {
            lines.push(
                "INCOMPLETE: hetrace itself was ended before its program; what else was lost is \
                 not known"
                    .to_owned(),
            );
        }
        lines
    }

    fn remarks(&self) -> Vec<String> {
        let t = self.tally;
        let mut lines = Vec::new();
        if let Some(Exit::Signal(signal)) = t.exit {
            lines.push(format!("The program was ended by signal {signal}."));
        }
        if t.untimed_commands > 0 {
            let commands = plural(t.untimed_commands, "device command");
            lines.push(format!("{commands} without known times: counted, but not in the times."));
        }
        if t.commands_under_way > 0 {
            let commands = plural(t.commands_under_way, "device command");
            lines.push(format!("{commands} under way when the program ended: not counted."));
        }
        if t.host_clock_error_ns > 0.0 {
            let error = duration_f(t.host_clock_error_ns);
            lines.push(format!("Times of the host are right within {error}."));
        }
        for clock in &t.clock_errors {
            let error = match clock.error_ns {
                Some(ns) => format!("right within {}", duration_f(ns)),
                None => "of unknown error".to_owned(),
            };
            lines.push(format!("Times of {} (process {}) are {error}.", clock.device, clock.pid));
        }
        lines.extend(t.notes.iter().map(|note| format!("Note: {note}")));
        lines
    }
}

fn errors(n: u64) -> String {
    if n == 0 { String::new() } else { count(n) }
}
