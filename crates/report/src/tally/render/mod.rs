//! The tables as text.

mod budget;
mod device;
mod header;
mod host;
mod inside;
mod memory;
mod program;
mod sampled;
mod truth;

use std::fmt::{self, Write};

use super::by::{By, Group};
use super::rows::Tally;
use crate::text::{Column, Style, Table};
use hetrace_trace::demangle;
use hetrace_trace::text::{count, duration, duration_f};

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
    /// Names of kernels with all that templates and parameters add.
    pub full_names: bool,
    /// Also median, 99th percentile and standard deviation.
    pub stats: bool,
    /// So many rows of each table of calls, commands, traffic and ranges; the
    /// others in one.
    pub top: Option<usize>,
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
        renderer.header()?;
        renderer.about()?;
        renderer.covered()?;
        renderer.host()?;
        renderer.layers()?;
        renderer.sampled()?;
        renderer.errors()?;
        renderer.device()?;
        renderer.kernels()?;
        renderer.inside()?;
        renderer.traffic()?;
        renderer.memory()?;
        renderer.ranges()?;
        renderer.counters()?;
        renderer.probes()?;
        renderer.probe_ranges()?;
        renderer.collectives()?;
        renderer.unfinished_collectives()?;
        renderer.telemetry()?;
        renderer.host_telemetry()?;
        if renderer.blocks == 0 {
            let nothing = match self.chosen {
                None => "No calls and no commands were recorded.",
                Some(_) => NOTHING_CHOSEN,
            };
            writeln!(renderer.out, "{nothing}")?;
        }
        renderer.truth()
    }
}

/// Said where other tables are all that is left.
const NOTHING_CHOSEN: &str = "No events match the filter.";

/// Columns of tables when nobody said how many there are.
const WIDTH: usize = 100;
/// The same, with columns of the distribution.
const WIDTH_OF_STATS: usize = 132;

struct Renderer<'a> {
    tally: &'a Tally,
    out: &'a mut dyn Write,
    options: &'a TextOptions,
    style: Style,
    /// Tables written so far.
    blocks: u32,
}

impl Renderer<'_> {
    /// What a row is of by one of its parts. Of a line the function is as short as names of kernels are.
    fn group(&self, group: &Group, by: By) -> String {
        let text = group.get(by).unwrap_or_default();
        match text.split_once(' ') {
            Some((place, function))
                if by == By::Line && !self.options.full_names && function.contains("::") =>
            {
                format!("{place} {}", demangle::shortened(function))
            }
            _ => text.to_owned(),
        }
    }

    fn heading(&mut self, parts: &[String]) -> fmt::Result {
        if self.blocks > 0 {
            writeln!(self.out)?;
        }
        self.blocks += 1;
        match self.options.form {
            Form::Plain => writeln!(self.out, "{}", self.style.bold(&parts.join(" | "))),
            Form::Markdown => writeln!(self.out, "### {}\n", parts.join(", ")),
        }
    }

    fn table(&mut self, table: &Table) -> fmt::Result {
        let TextOptions { width, max_name, form, .. } = *self.options;
        if form == Form::Markdown {
            return table.write_markdown(self.out);
        }
        table.write(self.out, self.style, width, max_name)
    }

    /// The same; names of devices' functions have no end, so there is always one.
    fn narrow_table(&mut self, table: &Table) -> fmt::Result {
        let TextOptions { width, max_name, full_names, stats, form, .. } = *self.options;
        if form == Form::Markdown {
            return table.write_markdown(self.out);
        }
        let most = if stats { WIDTH_OF_STATS } else { WIDTH };
        // Nobody said how much room there is: then no column is left out.
        if width.is_none() {
            return table.write_whole(self.out, self.style, (!full_names).then_some(most), max_name);
        }
        table.write(self.out, self.style, width, max_name)
    }

    /// Rows that are shown, and the others.
    fn cut<'r, R>(&self, rows: &'r [R]) -> (&'r [R], &'r [R]) {
        rows.split_at(self.options.top.unwrap_or(usize::MAX).min(rows.len()))
    }

    /// Headings of the distribution's columns.
    fn stats(&self) -> &'static [&'static str] {
        if self.options.stats { &["p50", "p99", "Dev"] } else { &[] }
    }

    /// Their cells.
    fn stats_cells(&self, p50: u64, p99: u64, dev: f64, shown: bool) -> Vec<String> {
        match (self.options.stats, shown) {
            (false, _) => Vec::new(),
            (true, false) => vec![String::new(); 3],
            (true, true) => vec![duration(p50), duration(p99), duration_f(dev.round())],
        }
    }
}

/// Columns that are left out where there is no room, the first ones first.
const SPARE: [&str; 24] = [
    "Cluster",
    "Tracing",
    "Error time",
    "Failed bytes",
    "Local",
    "In graphs",
    "Regs",
    "Not freed",
    "Failed",
    "Grid",
    "Shared",
    "Dev",
    "p50",
    "p99",
    "Launched",
    "At",
    "Blocked",
    "Runnable",
    "On CPU",
    "Min",
    "Max",
    "Average",
    "Occupancy",
    "Total",
];

/// A column that is flush right.
fn right(heading: &'static str) -> Column {
    let place = SPARE.iter().position(|spare| *spare == heading);
    let column = Column::right(heading).spare(place.map_or(0, |place| (SPARE.len() - place) as u8));
    if matches!(heading, "Error" | "Failed") { column.alarm() } else { column }
}

/// What stands for rows that are not shown.
fn others(n: usize) -> String {
    format!("({n} more)")
}

fn errors(n: u64) -> String {
    if n == 0 { String::new() } else { count(n) }
}

/// Text, or nothing where there is none of it.
fn some(n: u64, text: impl Fn(u64) -> String) -> String {
    if n == 0 { String::new() } else { text(n) }
}
