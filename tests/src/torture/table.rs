//! The table of `docs/reliability.md`.

use std::fmt::Write;

use super::case::Case;
use super::outcome::{Figures, Outcome};

/// A line of the table: all runs of all cases that try one promise.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// What it is about.
    pub subject: String,
    /// The test.
    pub test: String,
    /// What is promised.
    pub promise: String,
    /// How it was tried.
    pub tried: String,
    /// Figures of all runs.
    pub figures: Figures,
    /// Runs in which a promise was broken.
    pub broken: u64,
    /// Reasons why runs were skipped.
    pub skipped: Vec<String>,
}

impl Row {
    /// The row of a case, without a run.
    pub fn of(case: &Case) -> Row {
        Row {
            subject: case.subject.to_owned(),
            test: case.name.to_owned(),
            promise: case.promise.to_owned(),
            tried: case.tried.to_owned(),
            ..Row::default()
        }
    }

    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.figures.add(&outcome.figures);
        self.broken += u64::from(!outcome.faults.is_empty());
        let reason = outcome.skipped.iter().filter(|reason| !self.skipped.contains(reason));
        self.skipped.extend(reason.cloned().collect::<Vec<_>>());
    }

    fn result(&self) -> String {
        let mut words = match (self.broken, self.figures.runs) {
            (0, 0) => String::new(),
            (0, _) => "kept".to_owned(),
            (broken, runs) => format!("**broken in {broken} of {runs}**"),
        };
        for reason in &self.skipped {
            let _ = write!(words, "{}skipped: {reason}", if words.is_empty() { "" } else { "; " });
        }
        words
    }
}

/// Rows as Markdown.
pub fn markdown(rows: &[Row]) -> String {
    let heads = [
        "subject",
        "test",
        "promise",
        "how it was tried",
        "runs",
        "processes",
        "threads",
        "kills",
        "jumps",
        "mutations",
        "calls made",
        "recorded",
        "reported lost",
        "unaccounted",
        "result",
    ];
    let mut out = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let f = &row.figures;
        let numbers = [
            f.runs,
            f.processes,
            f.threads,
            f.kills,
            f.jumps,
            f.attacks,
            f.made,
            f.recorded,
            f.lost,
            f.unaccounted,
        ]
        .map(grouped)
        .join(" | ");
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {numbers} | {} |",
            row.subject,
            row.test,
            row.promise,
            row.tried,
            row.result()
        );
    }
    out
}

/// `1234567` as `1,234,567`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_what_was_broken() {
        let mut row = Row {
            subject: "s".into(),
            test: "t".into(),
            promise: "p".into(),
            tried: "h".into(),
            ..Row::default()
        };
        let figures = Figures { runs: 1, made: 1_234_567, unaccounted: 3, ..Figures::default() };
        row.add(&Outcome { figures, faults: vec!["x".into()], ..Outcome::default() });
        row.add(&Outcome { skipped: Some("no namespaces".into()), ..Outcome::default() });
        let text = markdown(&[row]);
        assert!(
            text.ends_with(
                "| s | t | p | h | 1 | 0 | 0 | 0 | 0 | 0 | 1,234,567 | 0 | 0 | 3 \
                 | **broken in 1 of 1**; skipped: no namespaces |\n"
            ),
            "{text}"
        );
    }
}
