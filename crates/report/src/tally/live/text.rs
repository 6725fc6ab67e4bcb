//! A picture as text.

use std::fmt::Write;

use hetrace_trace::text::{bytes, count, duration, duration_f, plural};

use super::super::By;
use super::super::rows::{DeviceRow, HostRow};
use super::picture::{Busy, Picture};
use crate::text::{Column, Style, Table};

/// How a picture is shown.
#[derive(Clone, Debug, Default)]
pub struct LiveText {
    /// With colours.
    pub colour: bool,
    /// Columns at most.
    pub width: Option<usize>,
    /// Lines at most: tables give way, and say how many rows are left out.
    pub height: Option<usize>,
    /// What is said in the first line, before what is in every picture: the program and its process.
    pub title: String,
}

/// Rows of a table where the height is not limited.
const ROWS: usize = 20;
/// Rows of open calls, and of devices.
const FEW: usize = 6;
/// Rows that calls and commands have together, if both are shown.
const LEAST: usize = 6;
/// Lines of a table beside its rows: heading, names of columns, rule, what is left out, a blank one.
const FRAME: usize = 5;

impl Picture {
    /// Returns it as text, of which each line ends with a line feed.
    pub fn text(&self, options: &LiveText) -> String {
        let style = Style { colour: options.colour };
        let mut lines = self.head(style, &options.title);
        let (mut devices, mut open) = (self.devices(options), self.open(options));
        // Calls come first where there is little room.
        let fits = |others: usize| options.height.is_none_or(|height| others + 2 * FRAME + LEAST <= height);
        if !fits(lines.len() + devices.len() + open.len()) {
            open.clear();
        }
        if !fits(lines.len() + devices.len()) {
            devices.clear();
            lines.extend(self.device_line(options.width));
        }
        let commands = self.tally.device.len();
        let rest =
            options.height.map(|height| height.saturating_sub(lines.len() + devices.len() + open.len()));
        let (calls, commands) = match rest {
            None => (ROWS, ROWS),
            Some(rest) if commands == 0 || rest < 2 * FRAME + LEAST => (rest.saturating_sub(FRAME), 0),
            Some(rest) => {
                let rows = rest - 2 * FRAME;
                let commands = commands.min(rows / 3);
                (rows - commands, commands)
            }
        };
        lines.extend(self.calls(options, calls));
        lines.extend(self.commands(options, commands));
        lines.extend(devices);
        lines.extend(open);
        if let Some(height) = options.height {
            lines.truncate(height);
        }
        let mut text = String::new();
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// Returns the picture in one line, for where there is no room for more.
    pub fn line(&self) -> String {
        let calls = self.tally.host.iter().map(|r| r.calls).fold(0, u64::saturating_add);
        let commands = self.tally.device.iter().map(|r| r.calls).fold(0, u64::saturating_add);
        let errors = self.tally.host.iter().map(|r| r.errors).fold(0, u64::saturating_add);
        let mut line = format!(
            "{}: {}, {}",
            duration(self.elapsed_ns),
            plural(calls, "call"),
            plural(commands, "device command")
        );
        if errors > 0 {
            let _ = write!(line, ", {}", plural(errors, "error"));
        }
        let lost = self.tally.lost_events;
        if lost > 0 {
            let _ = write!(line, ", LOST: {}", plural(lost, "event"));
        }
        self.unread().iter().for_each(|unread| _ = write!(line, ", NOT READ: {unread}"));
        line
    }

    /// Returns which parts of a series were removed too early, if some were.
    fn unread(&self) -> Option<String> {
        let parts = [
            (self.unread_parts, "removed before it was read", "removed before they were read"),
            (self.cut_parts, "removed before all of it was read", "removed before all of them was read"),
        ];
        let text = |(n, one, many): (u64, &str, &str)| {
            (n > 0).then(|| format!("{} {}", plural(n, "part"), if n == 1 { one } else { many }))
        };
        let parts: Vec<String> = parts.into_iter().filter_map(text).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    fn head(&self, style: Style, title: &str) -> Vec<String> {
        let mut first = clean(title);
        let mut second = vec![
            format!("{} {}", if self.ended { "ended after" } else { "for" }, duration(self.elapsed_ns)),
            plural(self.events, "event"),
            bytes(self.bytes),
        ];
        second.extend(self.events_per_second.map(|rate| format!("{} events/s", count(rate as u64))));
        if first.is_empty() {
            first.push_str("hetrace");
        }
        let mut lines = vec![style.bold(&first), second.join(" | ")];
        let t = &self.tally;
        let mut losses = Vec::new();
        if t.lost_events > 0 {
            losses.push(format!("{} (ring buffer overflow)", plural(t.lost_events, "event")));
        }
        for (n, what) in [
            (t.lost_device_commands, "device command"),
            (t.lost_packets, "packet"),
            (t.damaged, "damaged place"),
        ] {
            if n > 0 {
                losses.push(plural(n, what));
            }
        }
        if !losses.is_empty() {
            lines.push(style.red(&format!("LOST: {}", losses.join(", "))));
        }
        lines.extend(self.unreadable.iter().map(|why| style.red(&format!("NOT READ: {}", clean(why)))));
        lines.extend(self.unread().map(|unread| style.red(&format!("NOT READ: {unread}"))));
        if t.host.is_empty() && t.device.is_empty() {
            lines.push(String::new());
            lines.push("no calls have ended yet".to_owned());
        }
        lines
    }

    fn calls(&self, options: &LiveText, rows: usize) -> Vec<String> {
        if self.tally.host.is_empty() || rows == 0 {
            return Vec::new();
        }
        let by: Vec<By> = self.tally.by.iter().copied().filter(|by| by.is_of_calls()).collect();
        let by = if by.is_empty() { vec![By::Name, By::Api] } else { by };
        let mut columns: Vec<Column> = by.iter().map(|by| Column::left(by.heading())).collect();
        let nested = self.tally.host.iter().any(|row| row.self_ns != row.total_ns);
        columns.extend(["Time", "Self", "Calls", "Calls/s", "Average", "Error"].map(Column::right));
        let mut table = Table::new(columns);
        for (at, row) in self.tally.host.iter().enumerate().take(rows) {
            let mut cells: Vec<String> = by.iter().map(|by| host_label(row, *by)).collect();
            cells.extend([
                duration(row.total_ns),
                if nested { duration(row.self_ns) } else { String::new() },
                count(row.calls),
                self.calls_per_second.get(at).map_or_else(String::new, |rate| count(rate.round() as u64)),
                duration_f(row.avg_ns),
                if row.errors > 0 { count(row.errors) } else { String::new() },
            ]);
            table.row(cells);
        }
        section(options, "Calls", &table, self.tally.host.len().saturating_sub(rows))
    }

    fn commands(&self, options: &LiveText, rows: usize) -> Vec<String> {
        if self.tally.device.is_empty() || rows == 0 {
            return Vec::new();
        }
        let by: Vec<By> = self.tally.by.clone();
        let by = if by.is_empty() { vec![By::Name] } else { by };
        let mut columns: Vec<Column> = by.iter().map(|by| Column::left(by.heading())).collect();
        columns.extend(["Time", "Commands", "Commands/s", "Average", "Bytes"].map(Column::right));
        let mut table = Table::new(columns);
        for (at, row) in self.tally.device.iter().enumerate().take(rows) {
            let mut cells: Vec<String> = by.iter().map(|by| device_label(row, *by)).collect();
            cells.extend([
                duration(row.total_ns),
                count(row.calls),
                self.commands_per_second.get(at).map_or_else(String::new, |rate| count(rate.round() as u64)),
                duration_f(row.avg_ns),
                if row.bytes > 0 { bytes(row.bytes) } else { String::new() },
            ]);
            table.row(cells);
        }
        section(options, "Device commands", &table, self.tally.device.len().saturating_sub(rows))
    }

    fn devices(&self, options: &LiveText) -> Vec<String> {
        if self.busy.is_empty() {
            return Vec::new();
        }
        let columns = vec![Column::left("Device"), Column::right("Process"), Column::right("Busy")];
        let mut table = Table::new(columns);
        for busy in self.busy.iter().take(FEW) {
            let share = match busy.percent {
                Some(percent) => format!("{percent:.0}%"),
                None => duration(busy.busy_ns),
            };
            table.row(vec![clean(&busy.device), busy.pid.to_string(), share]);
        }
        section(options, "Devices", &table, self.busy.len().saturating_sub(FEW))
    }

    /// Devices in a line.
    fn device_line(&self, width: Option<usize>) -> Option<String> {
        let share = |busy: &Busy| {
            let share =
                busy.percent.map_or_else(|| duration(busy.busy_ns), |percent| format!("{percent:.0}%"));
            format!("{} {share}", clean(&busy.device))
        };
        let all: Vec<String> = self.busy.iter().take(FEW).map(share).collect();
        (!all.is_empty()).then(|| cut(&format!("busy: {}", all.join(", ")), width))
    }

    fn open(&self, options: &LiveText) -> Vec<String> {
        if self.open_calls.is_empty() || self.ended {
            return Vec::new();
        }
        let columns = vec![Column::left("Thread"), Column::left("Call"), Column::right("For")];
        let mut table = Table::new(columns);
        for call in self.open_calls.iter().take(FEW) {
            let thread = format!("{}:{} {}", call.pid, call.tid, clean(&call.thread));
            table.row(vec![thread.trim_end().to_owned(), clean(&call.name), duration(call.for_ns)]);
        }
        section(options, "Threads in calls", &table, self.open_calls.len().saturating_sub(FEW))
    }
}

fn section(options: &LiveText, heading: &str, table: &Table, left_out: usize) -> Vec<String> {
    let style = Style { colour: options.colour };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = table.write(&mut text, style, options.width, Some(60));
    let mut lines = vec![String::new(), style.bold(heading)];
    lines.extend(text.lines().map(|line| cut(line, options.width)));
    if left_out > 0 {
        lines.push(style.dim(&format!("and {} more", plural(left_out as u64, "row"))));
    }
    lines
}

/// Cuts a line that is too long for the terminal; one with colours is left, as its columns were made to fit.
fn cut(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if !line.contains('\x1b') => line.chars().take(width).collect(),
        _ => line.to_owned(),
    }
}

/// Names come from programs: what would move the cursor is shown as what it is.
fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { clean.extend(c.escape_default()) } else { clean.push(c) }
    }
    clean
}

fn host_label(row: &HostRow, by: By) -> String {
    clean(match by {
        By::Name => &row.name,
        By::Api => &row.api,
        by => row.group.get(by).unwrap_or_default(),
    })
}

fn device_label(row: &DeviceRow, by: By) -> String {
    clean(match by {
        By::Name => &row.name,
        By::Api => &row.api,
        by => row.group.get(by).unwrap_or_default(),
    })
}
