//! What a benchmark has to say: tables for people while it runs, and the same
//! numbers as JSON at the end.

use serde_json::{Map, Value};

/// Collects results; prints them unless JSON was asked for.
#[derive(Debug, Default)]
pub struct Report {
    quiet: bool,
    data: Map<String, Value>,
}

impl Report {
    /// With `quiet` only [`Report::finish`] prints.
    pub fn new(quiet: bool) -> Self {
        Report { quiet, data: Map::new() }
    }

    /// Begins a part.
    pub fn title(&self, text: &str) {
        self.line("");
        self.line(&format!("## {text}"));
    }

    /// A line of text.
    pub fn line(&self, text: &str) {
        if !self.quiet {
            println!("{text}");
        }
    }

    /// A table; the first column is text, the others are numbers.
    pub fn table(&self, head: &[&str], rows: &[Vec<String>]) {
        for line in aligned(head, rows) {
            self.line(&line);
        }
    }

    /// Keeps numbers for the JSON.
    pub fn keep(&mut self, key: &str, value: Value) {
        self.data.insert(key.to_owned(), value);
    }

    /// Prints the JSON if that was asked for.
    pub fn finish(self) {
        if self.quiet {
            println!("{:#}", Value::Object(self.data));
        }
    }
}

fn aligned(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = head.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: Vec<&str>| {
        let mut text = String::new();
        for (i, (cell, width)) in cells.into_iter().zip(&widths).enumerate() {
            let cell = if i == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            text.push_str(&cell);
        }
        text.trim_end().to_owned()
    };
    let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
    let mut lines = vec![line(head.to_vec()), rule];
    lines.extend(rows.iter().map(|r| line(r.iter().map(String::as_str).collect())));
    lines
}

/// A number with so many digits behind the point; a dash if it is none.
pub fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

/// A difference, with its sign.
pub fn difference(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:+.digits$}") } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "1.0".to_owned()], vec!["long".to_owned(), "-".to_owned()]];
        assert_eq!(aligned(&["", "ns"], &rows), ["       ns", "---------", "a     1.0", "long    -"]);
    }
}
