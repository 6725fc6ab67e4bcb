//! Tables with a bar between the columns.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};

use super::Style;

/// A column's heading and whether it is flush left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub heading: &'static str,
    pub left: bool,
}

impl Column {
    pub const fn left(heading: &'static str) -> Self {
        Self { heading, left: true }
    }

    pub const fn right(heading: &'static str) -> Self {
        Self { heading, left: false }
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
        let kept: Vec<usize> = (0..self.columns.len()).filter(full).collect();
        let cells =
            |row: &Vec<String>| kept.iter().map(|i| row.get(*i).cloned().unwrap_or_default()).collect();
        Self {
            columns: kept.iter().map(|i| self.columns[*i]).collect(),
            rows: self.rows.iter().map(cells).collect(),
            totals: self.totals,
        }
    }

    /// Writes the table without columns that have no content; the first column
    /// gives way when all is wider than `width`.
    pub fn write(
        &self,
        out: &mut dyn Write,
        style: Style,
        width: Option<usize>,
        max_name: Option<usize>,
    ) -> fmt::Result {
        self.full_columns().write_all(out, style, width, max_name)
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

    fn write_all(
        &self,
        out: &mut dyn Write,
        style: Style,
        width: Option<usize>,
        max_name: Option<usize>,
    ) -> fmt::Result {
        let length = |text: &str| text.chars().count();
        let cell = |row: &[String], i: usize| row.get(i).map_or(0, |c| length(c));
        let mut widths: Vec<usize> = self.columns.iter().map(|c| length(c.heading)).collect();
        for (i, w) in widths.iter_mut().enumerate() {
            *w = self.rows.iter().map(|r| cell(r, i)).fold(*w, usize::max);
        }
        let others: usize = widths.iter().skip(1).map(|w| w + BAR.len()).sum();
        let room = width.map(|w| w.saturating_sub(others).max(MIN_NAME));
        let most = [room, max_name.map(|m| m.max(1))].into_iter().flatten().min();
        if let (Some(first), Some(most)) = (widths.first_mut(), most) {
            *first = (*first).min(most.max(length(self.columns[0].heading)));
        }
        let headings: Vec<_> = self.columns.iter().map(|c| c.heading.to_owned()).collect();
        let alike = self.alike(widths.first().copied().unwrap_or(0));
        writeln!(out, "{}", style.bold(&self.line(&headings, &widths, &alike)))?;
        let rule: Vec<_> = widths.iter().map(|w| "-".repeat(*w)).collect();
        let rule = rule.join("-+-");
        writeln!(out, "{}", style.dim(&rule))?;
        let body = self.rows.len() - self.totals.min(self.rows.len());
        for (i, row) in self.rows.iter().enumerate() {
            if i == body {
                writeln!(out, "{}", style.dim(&rule))?;
            }
            writeln!(out, "{}", self.line(row, &widths, &alike))?;
        }
        Ok(())
    }

    /// Beginnings of different names that would look the same, cut to so many characters.
    fn alike(&self, width: usize) -> HashSet<String> {
        let mut whole: HashMap<String, &str> = HashMap::new();
        let mut alike = HashSet::new();
        for name in self.rows.iter().filter_map(|row| row.first()) {
            let short = cut(name, width);
            if *whole.entry(short.clone()).or_insert(name) != name {
                alike.insert(short);
            }
        }
        alike
    }

    fn line(&self, cells: &[String], widths: &[usize], alike: &HashSet<String>) -> String {
        let mut line = String::new();
        for (i, (column, &width)) in self.columns.iter().zip(widths).enumerate() {
            if i > 0 {
                line.push_str(BAR);
            }
            let whole = cells.get(i).map_or("", String::as_str);
            let mut text = cut(whole, width);
            if i == 0 && alike.contains(&text) {
                text = cut_within(whole, width);
            }
            let _ = match column.left {
                true => write!(line, "{text:<width$}"),
                false => write!(line, "{text:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

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
}
