//! What a trace is of, in a few lines before all tables.

use std::fmt;

use super::{Form, Renderer};
use crate::tally::rows::{DeviceUseRow, Tally};
use crate::text::wrap;
use hetrace_trace::text::{count, duration, plural};
use hetrace_trace::trace::Exit;

/// Devices that have a line.
const DEVICES: usize = 4;

/// Width of what stands before each line.
const LABEL: usize = 11;

impl Renderer<'_> {
    /// The program, how long it ran, how busy its devices were, and how well that is known. Nothing of several traces, which have a
    /// table.
    pub fn header(&mut self) -> fmt::Result {
        let t = self.tally;
        if !t.traces.is_empty() || t.command.is_empty() {
            return Ok(());
        }
        let mut lines = vec![("Command", t.command.join(" ")), ("Time", time(t))];
        let shown = t.utilization.iter().take(DEVICES).map(device);
        let more = t.utilization.iter().skip(DEVICES).map(|row| row.percent);
        let (n, sum) = (more.clone().count(), more.sum::<f64>());
        let more = (n > 0)
            .then(|| format!("{}, {:.1}% busy on average", plural(n as u64, "more device"), sum / n as f64));
        let labels = ["Devices"].into_iter().chain(std::iter::repeat(""));
        lines.extend(labels.zip(shown.chain(more)));
        lines.push(("Recording", String::new()));
        for (label, text) in lines {
            let recording = label == "Recording";
            let text = if recording { self.recording() } else { text };
            let is_lost = recording && !self.warnings().is_empty();
            self.header_line(label, &text, is_lost)?;
        }
        writeln!(self.out)
    }

    fn header_line(&mut self, label: &str, text: &str, red: bool) -> fmt::Result {
        let style = self.style;
        let shown = |text: &str| if red { style.red(text) } else { text.to_owned() };
        if self.options.form == Form::Markdown {
            let label = if label.is_empty() { "Devices" } else { label };
            return writeln!(self.out, "- {label}: {text}");
        }
        let room = self.options.width.map(|width| width.saturating_sub(LABEL).max(LABEL));
        for (at, line) in wrap(text, room).iter().enumerate() {
            let label = match (at, label) {
                (0, label) if !label.is_empty() => format!("{:<LABEL$}", format!("{label}:")),
                _ => " ".repeat(LABEL),
            };
            writeln!(self.out, "{}{}", style.bold(&label), shown(line))?;
        }
        Ok(())
    }

    /// What was lost, and what recording took.
    fn recording(&self) -> String {
        let warnings = self.warnings();
        let lost = match warnings.as_slice() {
            [] => "nothing lost".to_owned(),
            [one] => incomplete(one),
            [first, rest @ ..] => {
                let rest = plural(rest.len() as u64, "more remark");
                format!("{} ({rest} below)", incomplete(first))
            }
        };
        let Some(row) = &self.tally.tracing else { return lost };
        let share = match row.lifetime_ns {
            0 => String::new(),
            life => format!(" ({:.1}% of the run)", row.total_ns as f64 / life as f64 * 100.0),
        };
        format!("{lost} | overhead about {}{share}", duration(row.total_ns))
    }
}

/// A warning as the header has it: with its own words it stands below the tables.
fn incomplete(warning: &str) -> String {
    match warning.split_once(": ") {
        Some((kind, what)) => format!("incomplete ({}): {what}", kind.to_lowercase()),
        None => format!("incomplete: {warning}"),
    }
}

/// How long it took, in how many processes, and how it ended unless all went well.
fn time(t: &Tally) -> String {
    let exit = match t.exit {
        None | Some(Exit::Code(0)) => String::new(),
        Some(Exit::Code(code)) => format!(" | exit status {code}"),
        Some(Exit::Signal(signal)) => format!(" | ended by signal {signal}"),
    };
    format!("{} | {}{exit}", duration(t.duration_ns), plural(t.processes, "process"))
}

fn device(row: &DeviceUseRow) -> String {
    let least = if row.partly { "≥" } else { "" };
    let processes = match row.processes {
        0 | 1 => String::new(),
        n => format!(" | sum of {} processes", count(n)),
    };
    format!(
        "{}: {least}{:.1}% busy | {}{processes}",
        row.device,
        row.percent,
        plural(row.commands, "command")
    )
}
