//! The report as text: what is missing, the runs, the wholes, then their parts.

use std::collections::HashMap;
use std::fmt::{self, Write};

use super::By;
use super::profile::RunRow;
use super::rows::{Change, Report, Row, Table as Part, What};
use super::stats::are_trimmed;
use super::verdict::Metric;
use crate::text::{Column, Style, Table, more, wrap};
use hetrace_trace::demangle;
use hetrace_trace::sums::Missing;
use hetrace_trace::text::{bytes, count, duration, duration_f, plural};

/// How the text should look.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// ANSI colours.
    pub colour: bool,
    /// Columns of the terminal: the first column of each table gives way to fit in.
    pub width: Option<usize>,
    /// Rows of each table.
    pub top: usize,
    /// Names of kernels with all that templates and parameters add.
    pub full_names: bool,
    /// What the text is for.
    pub form: Form,
}

/// What text is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A terminal.
    #[default]
    Plain,
    /// A page in Markdown.
    Markdown,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { colour: false, width: None, top: 20, full_names: false, form: Form::Plain }
    }
}

/// Columns of the header's labels.
const LABEL: usize = 11;

/// Marks of what chance alone hardly makes.
const ALONE: &str = "*";
const OF_ALL: &str = "**";

impl Report {
    /// All of it as text.
    pub fn render(&self, options: &TextOptions) -> String {
        let mut text = String::new();
        let style = Style { colour: options.colour };
        // Writing to a string does not fail.
        let _ = Renderer { report: self, out: &mut text, options, style }.write();
        text
    }

    /// Keeps so many rows of each table.
    pub fn keep(&mut self, rows: usize) {
        for table in &mut self.tables {
            table.rows.truncate(rows);
            table.appeared.truncate(rows);
            table.vanished.truncate(rows);
        }
    }
}

struct Renderer<'a> {
    report: &'a Report,
    out: &'a mut String,
    options: &'a TextOptions,
    style: Style,
}

impl Renderer<'_> {
    fn write(&mut self) -> fmt::Result {
        self.header()?;
        self.missing()?;
        self.runs()?;
        self.whole()?;
        for part in &self.report.tables {
            self.part(part)?;
        }
        self.remarks()
    }

    fn heading(&mut self, parts: &[&str]) -> fmt::Result {
        match self.options.form {
            Form::Plain => writeln!(self.out, "{}", self.style.bold(&parts.join(" | "))),
            Form::Markdown => writeln!(self.out, "### {}\n", parts.join(", ")),
        }
    }

    fn line(&mut self, text: &str) -> fmt::Result {
        // In Markdown, a line by itself is a part of the one before.
        if self.options.form == Form::Markdown {
            return writeln!(self.out, "- {text}");
        }
        // With colours, columns are not to be counted.
        let width = self.options.width.filter(|_| !text.contains('\x1b'));
        wrap(text, width).iter().try_for_each(|line| writeln!(self.out, "{line}"))
    }

    fn table(&mut self, table: &Table) -> fmt::Result {
        match self.options.form {
            Form::Markdown => table.write_markdown(self.out)?,
            Form::Plain => table.write(self.out, self.style, self.options.width, None)?,
        }
        writeln!(self.out)
    }

    /// What is missing in which run.
    fn missing(&mut self) -> fmt::Result {
        let sides = [("A", &self.report.a), ("B", &self.report.b)];
        for (side, runs) in sides {
            for (number, run) in (1..).zip(runs) {
                if run.missing.any() {
                    let line = format!("{side}{number}: {}", missing(&run.missing));
                    self.line(&self.style.red(&line))?;
                }
            }
        }
        if self.report.is_lossy() {
            self.line("Sums of these runs are lower bounds.")?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// What is compared, as one looks at it first: commands, time, how busy devices were, losses.
    fn header(&mut self) -> fmt::Result {
        for (side, runs) in [("A", &self.report.a), ("B", &self.report.b)] {
            let mut commands: Vec<String> = runs.iter().map(|run| run.command.join(" ")).collect();
            commands.dedup();
            let what = match commands.as_slice() {
                [one] if !one.is_empty() => format!(" of {one}"),
                [] | [_] => String::new(),
                _ => " of different commands".to_owned(),
            };
            self.header_line(side, &format!("{}{what}", plural(runs.len() as u64, "run")), false)?;
        }
        let of = |metric: Metric| self.report.whole.iter().find(|row| row.metric == metric.name());
        let both = |change: &Change| {
            let part = change.change_percent.map_or(String::new(), |p| format!(" | {}", percent(p)));
            let mark = if change.significant { "" } else { " (may be chance)" };
            let mark = if change.low_ns.is_some() { mark } else { "" };
            format!(
                "{} in A, {} in B{part}{mark}",
                duration_f(change.a_ns.round()),
                duration_f(change.b_ns.round())
            )
        };
        let wall = of(Metric::Wall).map(|row| both(&row.change));
        let busy = of(Metric::Device).filter(|row| row.change.a_ns > 0.0 || row.change.b_ns > 0.0);
        let busy = busy.map(|row| format!("busy for {}", both(&row.change)));
        let lossy = self.report.is_lossy();
        let kept = if lossy { "incomplete: see below" } else { "nothing lost" };
        for (label, text) in [("Time", wall), ("Devices", busy), ("Recording", Some(kept.to_owned()))] {
            if let Some(text) = text {
                self.header_line(label, &text, label == "Recording" && lossy)?;
            }
        }
        writeln!(self.out)
    }

    fn header_line(&mut self, label: &str, text: &str, red: bool) -> fmt::Result {
        if self.options.form == Form::Markdown {
            return writeln!(self.out, "- {label}: {text}");
        }
        let room = self.options.width.map(|width| width.saturating_sub(LABEL).max(LABEL));
        for (at, line) in wrap(text, room).iter().enumerate() {
            let label = if at == 0 { format!("{label}:") } else { String::new() };
            let line = if red { self.style.red(line) } else { line.clone() };
            writeln!(self.out, "{}{line}", self.style.bold(&format!("{label:<LABEL$}")))?;
        }
        Ok(())
    }

    fn runs(&mut self) -> fmt::Result {
        let mut columns = vec![Column::left("Run")];
        let numbers = [
            ("Wall time", 0),
            ("Devices busy", 1),
            ("In calls", 4),
            ("Calls", 2),
            ("Commands", 3),
            ("Processes", 5),
        ];
        columns.extend(numbers.map(|(heading, spare)| Column::right(heading).spare(spare)));
        columns.push(Column::left("Devices").spare(6));
        let mut table = Table::new(columns);
        for (side, runs) in [("A", &self.report.a), ("B", &self.report.b)] {
            for (number, run) in (1..).zip(runs) {
                table.row(run_cells(&format!("{side}{number}"), run));
            }
        }
        self.heading(&["Runs"])?;
        self.table(&table)
    }

    fn whole(&mut self) -> fmt::Result {
        let columns = [&[Column::left("Whole")], &columns()[..6]].concat();
        let mut table = Table::new(columns);
        for row in &self.report.whole {
            let metric = Metric::ALL.into_iter().find(|m| m.name() == row.metric);
            let title = metric.map_or(row.metric, Metric::title);
            table.row([vec![title.to_owned()], change_cells(&row.change, true)].concat());
        }
        let divided = if self.report.per_process { "per process and per device" } else { "all processes" };
        let trimmed = [&self.report.a, &self.report.b].iter().any(|side| are_trimmed(side.len()));
        let means = match trimmed {
            true => "Means of the runs without the least and greatest fifth of a side",
            false => "Means of the runs",
        };
        self.heading(&[means, divided])?;
        self.table(&table)
    }

    fn part(&mut self, part: &Part) -> fmt::Result {
        let (title, first, total) = match part.by {
            By::Path => ("By call path", "Call ← called by", "All calls"),
            By::Name => ("By function", "Function", "All calls"),
            By::Site => ("By call site", "Call ← code", "All calls"),
            By::Api => ("By API", "API", "All calls"),
            By::Kernel => ("By kernel", "Kernel", "All commands"),
            By::Copy => ("By copy", "Copy", "All commands"),
        };
        if part.rows.is_empty() && part.appeared.is_empty() && part.vanished.is_empty() {
            if part.hidden > 0 {
                self.heading(&[title, &hidden(part.hidden)])?;
                writeln!(self.out)?;
            }
            return Ok(());
        }
        let what = match (part.by.is_of_calls(), self.report.time) {
            (false, _) => "time on devices",
            (true, super::Time::Total) if part.by != By::Api => "time with calls inside",
            (true, _) => "time outside of other recorded calls",
        };
        let names = self.names(part);
        let rest = [&[Column::left(first)][..], &columns()[..]].concat();
        if !part.rows.is_empty() {
            let mut table = Table::new(rest.clone());
            for (row, name) in part.rows.iter().zip(&names[0]).take(self.options.top) {
                table.row([vec![name.clone()], row_cells(row, true)].concat());
            }
            table.total(totals(part, total));
            self.heading(&[title, what])?;
            self.table(&table)?;
            self.more(part.rows.len())?;
        }
        for (rows, names, word) in
            [(&part.appeared, &names[1], "only in B"), (&part.vanished, &names[2], "only in A")]
        {
            if rows.is_empty() {
                continue;
            }
            let mut table = Table::new(rest.clone());
            for (row, name) in rows.iter().zip(names).take(self.options.top) {
                table.row([vec![name.clone()], row_cells(row, false)].concat());
            }
            self.heading(&[title, word])?;
            self.table(&table)?;
            self.more(rows.len())?;
        }
        if part.hidden > 0 {
            self.line(&hidden(part.hidden))?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// Says how many rows were left out.
    fn more(&mut self, all: usize) -> fmt::Result {
        let left = all.saturating_sub(self.options.top);
        if left == 0 {
            return Ok(());
        }
        // The table has left a line free.
        self.line(&more(left, all))?;
        writeln!(self.out)
    }

    /// Names of all rows: those of kernels short, but where short ones are the same.
    fn names(&self, part: &Part) -> [Vec<String>; 3] {
        let all = [&part.rows, &part.appeared, &part.vanished];
        let mut seen: HashMap<(String, &str), usize> = HashMap::new();
        for row in all.into_iter().flatten() {
            *seen.entry((short(row), &row.what.device)).or_default() += 1;
        }
        all.map(|rows| {
            let name = |row: &Row| {
                let brief = short(row);
                let twice = seen.get(&(brief.clone(), row.what.device.as_str())).is_some_and(|n| *n > 1);
                let whole = (self.options.full_names || twice) && !row.symbol.is_empty();
                name(&row.what, if whole { &row.what.name } else { &brief })
            };
            rows.iter().map(name).collect()
        })
    }

    fn remarks(&mut self) -> fmt::Result {
        let rows =
            || self.report.tables.iter().flat_map(|t| t.rows.iter().chain(&t.appeared).chain(&t.vanished));
        let intervals: usize = self.report.tables.iter().map(|t| t.intervals).sum();
        if intervals > 0 {
            let marked = rows().filter(|row| row.change.significant).count();
            let chance = intervals as f64 * (1.0 - self.report.confidence);
            // By itself, Markdown takes it for a list or a stress.
            let (alone, of_all) = match self.options.form {
                Form::Plain => (format!("{ALONE} "), OF_ALL.to_owned()),
                Form::Markdown => (format!("`{ALONE}`"), format!("`{OF_ALL}`")),
            };
            self.line(&format!(
                "{alone} 0 is outside of the row's {:.0}% interval: in {marked} of {intervals} rows, of which chance \
                 alone makes about {chance:.1}",
                self.report.confidence * 100.0,
            ))?;
            self.line(&format!(
                "{of_all} significant after Bonferroni correction for the rows of the table"
            ))?;
        }
        for note in &self.report.notes {
            self.line(&format!("Note: {note}."))?;
        }
        let Some(verdict) = &self.report.verdict else { return Ok(()) };
        let limit = verdict.limit_percent;
        let of: Vec<&str> = verdict.metrics.iter().map(|m| m.title()).collect();
        let line = match verdict.failures.len() {
            0 => format!("OK: not more than {limit}% slower ({})", of.join(", ")),
            n => self.style.red(&format!("WORSE: {n} more than {limit}% slower ({})", of.join(", "))),
        };
        self.line(&line)?;
        for failure in &verdict.failures {
            self.line(&format!("  {failure}"))?;
        }
        Ok(())
    }
}

fn run_cells(label: &str, run: &RunRow) -> Vec<String> {
    let devices = run.devices.iter().map(|d| match (d.count, d.name.as_str()) {
        (n, "") => plural(n, "device"),
        (1, name) => name.to_owned(),
        (n, name) => format!("{n} × {name}"),
    });
    vec![
        format!("{label} {}", run.run),
        duration(run.wall_ns),
        run.busy_ns.filter(|_| run.commands > 0).map_or(String::new(), duration),
        duration(run.host_ns),
        count(run.calls),
        count(run.commands),
        count(run.processes),
        devices.collect::<Vec<_>>().join(", "),
    ]
}

fn missing(m: &Missing) -> String {
    let mut parts = Vec::new();
    let mut say = |n: u64, what: &str, how: &str| {
        if n > 0 {
            parts.push(format!("{}{how}", plural(n, what)));
        }
    };
    say(m.lost_events, "event", " lost");
    say(m.lost_calls, "call", " not, or not wholly, recorded");
    say(m.lost_commands, "device command", " lost");
    say(m.lost_processes, "process", " whose records could not be read");
    say(m.lost_packets, "packet", " lost");
    say(m.lost_bytes, "byte", " lost");
    say(m.damaged, "damaged place", "");
    say(m.differences, "difference", " from what was written");
    say(m.unfinished_calls, "call", " without an end");
    say(m.orphaned_exits, "end", " of calls without a beginning");
    say(m.untimed_commands, "device command", " without times");
    say(m.commands_in_flight, "device command", " in flight at the end");
    if m.manifest_missing {
        parts.push("hetrace has not finished this trace, and what is missing is not known".to_owned());
    }
    format!("INCOMPLETE: {}", parts.join(", "))
}

fn hidden(rows: usize) -> String {
    format!("({} changed less than --min-change)", plural(rows as u64, "row"))
}

/// Columns behind the first one.
fn columns() -> [Column; 14] {
    let right = Column::right;
    [
        right("A"),
        right("B"),
        right("Change"),
        right("Change(%)"),
        right("95% interval"),
        Column::left(" "),
        right("Share").spare(4),
        right("Calls A").spare(3),
        right("Calls B").spare(3),
        right("By calls").spare(7),
        right("By time").spare(7),
        right("Bytes A").spare(5),
        right("Bytes B").spare(5),
        Column::left("Runs with it").spare(2),
    ]
}

fn signed(ns: f64) -> String {
    let text = duration_f(ns.abs().round());
    match ns.round() {
        n if n > 0.0 => format!("+{text}"),
        n if n < 0.0 => format!("-{text}"),
        _ => text,
    }
}

fn percent(part: f64) -> String {
    // Beyond, digits say nothing.
    match part.abs() {
        p if p >= 1e6 => format!("{part:+.0e}%"),
        p if p >= 99.95 => format!("{part:+.0}%"),
        p if p < 0.05 => "0.0%".to_owned(),
        _ => format!("{part:+.1}%"),
    }
}

/// A number of calls; a mean of several runs may have a part.
fn calls(n: f64) -> String {
    if n.fract() == 0.0 { format!("{n:.0}") } else { format!("{n:.1}") }
}

fn change_cells(change: &Change, percents: bool) -> Vec<String> {
    let interval = match (change.low_percent, change.high_percent, change.low_ns, change.high_ns) {
        (Some(low), Some(high), ..) if percents => format!("{} to {}", percent(low), percent(high)),
        (_, _, Some(low), Some(high)) => format!("{} to {}", signed(low), signed(high)),
        _ => String::new(),
    };
    let mark = match (change.significant, change.significant_of_all) {
        (_, true) => OF_ALL,
        (true, _) => ALONE,
        _ => "",
    };
    vec![
        duration_f(change.a_ns.round()),
        duration_f(change.b_ns.round()),
        signed(change.change_ns),
        change.change_percent.filter(|_| percents).map_or(String::new(), percent),
        interval,
        mark.to_owned(),
    ]
}

/// Cells behind the name; `both`: the row is on both sides.
fn row_cells(row: &Row, both: bool) -> Vec<String> {
    let mut cells = change_cells(&row.change, both);
    if !both {
        let gone = if row.a_runs == 0 { 0 } else { 1 };
        cells[gone].clear();
    }
    let some = |text: String, is: bool| if is { text } else { String::new() };
    let change = &row.change;
    let (a_all, b_all) = (change.a_runs_ns.len(), change.b_runs_ns.len());
    let partly = (row.a_runs > 0 && row.a_runs < a_all) || (row.b_runs > 0 && row.b_runs < b_all);
    cells.extend([
        row.share_percent.filter(|_| change.change_ns != 0.0).map_or(String::new(), percent),
        some(calls(row.a_calls), row.a_runs > 0),
        some(calls(row.b_calls), row.b_runs > 0),
        some(signed(row.by_calls_ns), both && change.change_ns != 0.0),
        some(signed(row.by_time_ns), both && change.change_ns != 0.0),
        some(bytes(row.a_bytes as u64), row.a_bytes > 0.0),
        some(bytes(row.b_bytes as u64), row.b_bytes > 0.0),
        some(format!("{}/{a_all} and {}/{b_all}", row.a_runs, row.b_runs), partly),
    ]);
    cells
}

fn totals(part: &Part, title: &str) -> Vec<String> {
    let change = part.b_ns - part.a_ns;
    let of_a = if part.a_ns > 0.0 { percent(change * 100.0 / part.a_ns) } else { String::new() };
    vec![title.to_owned(), duration_f(part.a_ns.round()), duration_f(part.b_ns.round()), signed(change), of_a]
}

/// The name of a function or kernel, short.
fn short(row: &Row) -> String {
    match row.symbol.as_str() {
        "" => row.what.name.clone(),
        symbol => demangle::short(symbol).into_owned(),
    }
}

/// What a row is of; `name` stands for its function or kernel.
fn name(what: &What, name: &str) -> String {
    let mut text = match what.path.as_slice() {
        // The call itself first: the end of what is long is cut.
        [] if what.name.is_empty() => what.api.clone(),
        [] => name.to_owned(),
        path => path.iter().rev().map(|step| step.name.as_str()).collect::<Vec<_>>().join(" ← "),
    };
    if !what.from.is_empty() || !what.to.is_empty() {
        let or = |memory: &str| if memory.is_empty() { "?".to_owned() } else { memory.to_owned() };
        let _ = write!(text, " {} → {}", or(&what.from), or(&what.to));
    }
    if !what.device.is_empty() {
        let _ = write!(text, " on {}", what.device);
    }
    text
}
