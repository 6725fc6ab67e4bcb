//! Findings and the table of rules for people.

use std::fmt::Write;

use super::report::{Evidence, Finding, Report};
use super::rules::{RULES, Severity};
use crate::text::{Column, Style, Table};
use hetrace_trace::text::{count, duration, plural};

/// How the text looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOptions {
    /// ANSI colours.
    pub colour: bool,
}

impl Report {
    /// The findings as text.
    pub fn render(&self, options: &TextOptions) -> String {
        let style = Style { colour: options.colour };
        let mut out = String::new();
        for finding in &self.findings {
            write_finding(&mut out, style, finding);
        }
        let numbers =
            [plural(self.errors, "error"), plural(self.warnings, "warning"), plural(self.hints, "hint")];
        let _ = writeln!(out, "{}", style.bold(&numbers.join(", ")));
        for note in &self.notes {
            let _ = writeln!(out, "{note}");
        }
        out
    }
}

fn write_finding(out: &mut String, style: Style, finding: &Finding) {
    let severity = match finding.severity {
        Severity::Error => style.red(finding.severity.name()),
        Severity::Warning => style.bold(finding.severity.name()),
        Severity::Hint => finding.severity.name().to_owned(),
    };
    let _ = write!(out, "{severity}[{}]: {}", finding.rule, finding.message);
    let mut more = Vec::new();
    // Its message has the number already.
    if finding.count > 1 && finding.rule != "leak" {
        more.push(format!("{} times", count(finding.count)));
    }
    if let Some(cost) = finding.cost_ns.filter(|cost| *cost > 0) {
        let share = finding.share.filter(|share| *share >= 0.0005);
        let share = share.map_or(String::new(), |share| format!(", {:.1} % of the run", share * 100.0));
        more.push(format!("at most {}{share}", duration(cost)));
    }
    if !more.is_empty() {
        let _ = write!(out, " ({})", more.join(", "));
    }
    out.push('\n');
    for occurrence in &finding.occurrences {
        let width = occurrence.calls.iter().map(|call| call.part.len()).max().unwrap_or(0);
        for (at, call) in occurrence.calls.iter().enumerate() {
            let bullet = if at == 0 { "-" } else { " " };
            let _ = writeln!(out, "  {bullet} {:width$}  {}", call.part, style.dim(&line(call)));
        }
    }
    if let Some(doubt) = &finding.doubt {
        let _ = writeln!(out, "    doubt: {doubt}");
    }
    let _ = writeln!(out, "    {}\n", finding.remedy);
}

/// A call as `print` shows it.
fn line(call: &Evidence) -> String {
    let (seconds, ns) = (call.time_ns / 1_000_000_000, call.time_ns % 1_000_000_000);
    let text = if call.call.is_empty() { "a call that is not in the trace" } else { &call.call };
    let place = match call.innermost() {
        Some(frame) if frame.file.is_empty() && frame.function.starts_with(&frame.module) => {
            format!("  at {}", frame.function)
        }
        Some(frame) if frame.file.is_empty() => format!("  at {} in {}", frame.function, frame.module),
        Some(frame) => format!("  at {}:{} in {}", frame.file, frame.line, frame.function),
        None => String::new(),
    };
    format!("{seconds}.{ns:09} {}:{} {text}{place}", call.pid, call.tid)
}

/// The table of rules as text.
pub fn rules_text(options: &TextOptions) -> String {
    let columns = ["Rule", "Severity", "Group", "What it claims"].map(Column::left);
    let mut table = Table::new(columns.to_vec());
    for rule in RULES {
        let cells = [rule.id, rule.severity.name(), rule.group.name(), rule.title];
        table.row(cells.map(str::to_owned).to_vec());
    }
    let mut out = String::new();
    let _ = table.write(&mut out, Style { colour: options.colour }, None, None);
    out
}
