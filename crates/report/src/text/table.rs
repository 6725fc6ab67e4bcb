//! Tables with a bar between the columns.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};

use super::Style;

/// A column's heading and whether it is flush left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub heading: &'static str,
    pub left: bool,
    /// Where there is no room, those with the largest number are left out first; those with 0 never are.
    spare: u8,
    /// What is in it is bad news, and red.
    alarm: bool,
}

impl Column {
    pub const fn left(heading: &'static str) -> Self {
        Self { heading, left: true, spare: 0, alarm: false }
    }

    pub const fn right(heading: &'static str) -> Self {
        Self { heading, left: false, spare: 0, alarm: false }
    }

    /// The same, to be left out where there is no room: the largest number first.
    pub const fn spare(self, spare: u8) -> Self {
        Self { spare, ..self }
    }

    /// The same for what is bad news.
    pub const fn alarm(self) -> Self {
        Self { alarm: true, ..self }
    }
}

/// Rows of cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// Rows below the line.
    totals: usize,
}

const BAR: &str = " | ";

impl Table {
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, ..Self::default() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// A row below the line.
    pub fn total(&mut self, cells: Vec<String>) {
        self.totals += 1;
        self.rows.push(cells);
    }

    /// Leaves out columns without content.
    fn full_columns(&self) -> Self {
        let full = |i: &usize| *i == 0 || self.rows.iter().any(|r| r.get(*i).is_some_and(|c| !c.is_empty()));
        self.only(&(0..self.columns.len()).filter(full).collect::<Vec<_>>())
    }

    /// Leaves out all other columns.
    fn only(&self, kept: &[usize]) -> Self {
        let cells =
            |row: &Vec<String>| kept.iter().map(|i| row.get(*i).cloned().unwrap_or_default()).collect();
        Self {
            columns: kept.iter().map(|i| self.columns[*i]).collect(),
            rows: self.rows.iter().map(cells).collect(),
            totals: self.totals,
        }
    }

    /// Writes the table without columns that have no content. When all is wider than `width`, names give way; if that
    /// is not enough, columns that can be spared are left out, which a line below says.
    pub fn write(
        &self,
        out: &mut dyn Write,
        style: Style,
        width: Option<usize>,
        max_name: Option<usize>,
    ) -> fmt::Result {
        let (table, left_out) = self.full_columns().within(width.unwrap_or(usize::MAX));
        table.write_all(out, style, &table.fitted(width, max_name, true))?;
        if let (Some(width), false) = (width, left_out.is_empty()) {
            let line = format!("(not shown in {width} columns: {})", left_out.join(", "));
            super::wrap(&line, Some(width)).iter().try_for_each(|l| writeln!(out, "{}", style.dim(l)))?;
        }
        Ok(())
    }

    /// The same with all columns, however wide they are: only the first one gives way.
    pub fn write_whole(
        &self,
        out: &mut dyn Write,
        style: Style,
        width: Option<usize>,
        max_name: Option<usize>,
    ) -> fmt::Result {
        let table = self.full_columns();
        table.write_all(out, style, &table.fitted(width, max_name, false))
    }

    /// Writes the table in Markdown, whole.
    pub fn write_markdown(&self, out: &mut dyn Write) -> fmt::Result {
        let table = self.full_columns();
        let text = |cell: &str| cell.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
        let headings = table.columns.iter().map(|c| text(c.heading));
        writeln!(out, "| {} |", headings.collect::<Vec<_>>().join(BAR))?;
        let rule = table.columns.iter().map(|c| if c.left { ":--" } else { "--:" });
        writeln!(out, "| {} |", rule.collect::<Vec<_>>().join(BAR))?;
        for row in &table.rows {
            let cells = row.iter().map(|cell| text(cell));
            writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(BAR))?;
        }
        Ok(())
    }

    /// Leaves out columns until the others fit with names of a legible length; with their headings.
    fn within(self, width: usize) -> (Self, Vec<&'static str>) {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let widths = self.widths();
        let least = |i: &usize| match self.columns[*i].left {
            true => widths[*i].min(LEGIBLE),
            false => widths[*i],
        };
        let needs = |kept: &[usize]| {
            kept.iter().map(|i| least(i) + BAR.len()).fold(0, usize::saturating_add).saturating_sub(BAR.len())
        };
        let mut left_out = Vec::new();
        while needs(&kept) > width {
            // Of equal ones the last.
            let spare = (0..kept.len()).filter(|at| self.columns[kept[*at]].spare > 0);
            let Some(at) = spare.max_by_key(|at| self.columns[kept[*at]].spare) else { break };
            left_out.push(self.columns[kept.remove(at)].heading);
        }
        (self.only(&kept), left_out)
    }

    /// The widths that columns need for all that is in them.
    fn widths(&self) -> Vec<usize> {
        let cell = |row: &[String], i: usize| row.get(i).map_or(0, |c| length(c));
        let widest = |(i, column): (usize, &Column)| {
            self.rows.iter().map(|r| cell(r, i)).fold(length(column.heading), usize::max)
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    /// Widths of which the sum is no more than `width`, as far as names can give way: the longest first, or only those
    /// of the first column.
    fn fitted(&self, width: Option<usize>, max_name: Option<usize>, every: bool) -> Vec<usize> {
        let mut widths = self.widths();
        if let (Some(first), Some(most)) = (widths.first_mut(), max_name) {
            *first = (*first).min(most.max(1).max(length(self.columns[0].heading)));
        }
        let Some(width) = width else { return widths };
        let all = widths.iter().map(|w| w + BAR.len()).sum::<usize>().saturating_sub(BAR.len());
        for _ in width..all {
            let least = |i: usize| MIN_NAME.max(length(self.columns[i].heading));
            let may = |i: &usize| *i == 0 || every && self.columns[*i].left;
            let names = (0..widths.len()).filter(|i| may(i) && widths[*i] > least(*i));
            match names.max_by_key(|i| (widths[*i], std::cmp::Reverse(*i))) {
                Some(longest) => widths[longest] -= 1,
                None => break,
            }
        }
        widths
    }

    fn write_all(&self, out: &mut dyn Write, style: Style, widths: &[usize]) -> fmt::Result {
        let headings: Vec<_> = self.columns.iter().map(|c| c.heading.to_owned()).collect();
        let alike: Vec<_> = (0..widths.len()).map(|i| self.alike(i, widths[i])).collect();
        let plain = Style { colour: false };
        writeln!(out, "{}", style.bold(&self.line(&headings, widths, &alike, plain)))?;
        let rule: Vec<_> = widths.iter().map(|w| "-".repeat(*w)).collect();
        let rule = rule.join("-+-");
        writeln!(out, "{}", style.dim(&rule))?;
        let body = self.rows.len() - self.totals.min(self.rows.len());
        for (i, row) in self.rows.iter().enumerate() {
            if i == body {
                writeln!(out, "{}", style.dim(&rule))?;
            }
            writeln!(out, "{}", self.line(row, widths, &alike, style))?;
        }
        Ok(())
    }

    /// Beginnings of different names of a column that would look the same, cut to so many characters.
    fn alike(&self, column: usize, width: usize) -> HashSet<String> {
        let mut whole: HashMap<String, &str> = HashMap::new();
        let mut alike = HashSet::new();
        for name in self.rows.iter().filter_map(|row| row.get(column)) {
            let short = cut(name, width);
            if *whole.entry(short.clone()).or_insert(name) != name {
                alike.insert(short);
            }
        }
        alike
    }

    fn line(&self, cells: &[String], widths: &[usize], alike: &[HashSet<String>], style: Style) -> String {
        let mut line = String::new();
        for (i, (column, &width)) in self.columns.iter().zip(widths).enumerate() {
            if i > 0 {
                line.push_str(BAR);
            }
            let whole = cells.get(i).map_or("", String::as_str);
            let mut text = cut(whole, width);
            if alike.get(i).is_some_and(|alike| alike.contains(&text)) {
                text = cut_within(whole, width);
            }
            let padding = " ".repeat(width.saturating_sub(length(&text)));
            let shown = if column.alarm && !text.is_empty() { style.red(&text) } else { text };
            line.push_str(&if column.left { shown + &padding } else { padding + &shown });
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Columns are left out before names are cut shorter than this.
const LEGIBLE: usize = 20;

/// A name is never cut shorter than this.
const MIN_NAME: usize = 12;

/// The text, or its start and its end with an ellipsis between.
fn cut_within(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let start = width.saturating_sub(1).div_ceil(2);
    let end = width.saturating_sub(1) - start;
    let start = text.chars().take(start).chain(['…']);
    start.chain(text.chars().skip(length - end)).collect()
}

/// The text, or its start and an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_alike_are_distinguished() {
        let mut table = Table::new(vec![Column::left("Name")]);
        for name in ["a_long_name_of_one", "a_long_name_of_two", "another_long_name", "short"] {
            table.row(vec![name.to_owned()]);
        }
        let mut out = String::new();
        let _ = table.write(&mut out, Style { colour: false }, None, Some(12));
        let names: Vec<&str> = out.lines().skip(2).collect();
        assert_eq!(names, ["a_long…f_one", "a_long…f_two", "another_lon…", "short"]);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let columns = vec![
            Column::left("Name"),
            Column::right("Time"),
            Column::right("Min").spare(1),
            Column::right("Max").spare(2),
        ];
        let mut table = Table::new(columns);
        table.row(
            ["a_name_of_thirty_characters_xxx", "10 s", "1.25 ms", "3.75 s"].map(str::to_owned).to_vec(),
        );
        let written = |width| {
            let mut out = String::new();
            let _ = table.write(&mut out, Style { colour: false }, Some(width), None);
            assert!(out.lines().all(|line| line.chars().count() <= width), "{width}: {out}");
            out
        };
        assert!(written(80).contains("Max") && !written(80).contains("not shown"));
        assert!(written(50).contains("a_name_of_thirty_charac…"));
        assert!(written(40).contains("(not shown in 40 columns: Max)") && written(40).contains("1.25 ms"));
        assert!(written(30).contains("(not shown in 30 columns: Max,\nMin)"), "{}", written(30));
        let mut whole = String::new();
        let _ = table.write_whole(&mut whole, Style { colour: false }, Some(30), None);
        assert!(whole.contains("3.75 s"), "a pipe loses nothing");
    }
}
