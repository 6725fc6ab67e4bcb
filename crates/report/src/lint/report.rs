//! What was found, as a value.

use std::collections::HashMap;

use serde::Serialize;

use super::findings::{Folded, Ref};
use super::rules::{RULES, Severity};
use super::show::{Key, Shown};
use super::walk::Linter;
use hetrace_trace::capture::Covered;
use hetrace_trace::spans::Summary;
use hetrace_trace::stacks::Frame;
use hetrace_trace::trace::Trace;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// All findings, the most severe and most expensive first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Findings of this severity.
    pub errors: u64,
    /// Findings of this severity.
    pub warnings: u64,
    /// Findings of this severity.
    pub hints: u64,
    /// All of them.
    pub findings: Vec<Finding>,
    /// What was not looked at, and why findings may be wrong.
    pub notes: Vec<String>,
    /// What is missing from the trace.
    pub missing: Missing,
}

/// What is missing from a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Events lost while recording.
    pub lost_events: u64,
    /// Calls that the losses concern, wholly or in part, as the manifest has it.
    pub lost_calls: u64,
    /// Device commands lost while recording.
    pub lost_commands: u64,
    /// Processes whose records could not be read, all or some.
    pub lost_processes: u64,
    /// Packets missing from the streams.
    pub lost_packets: u64,
    /// Places where a stream is cut or damaged.
    pub damaged: u64,
    /// Files that are missing, or not as they were written.
    pub differences: u64,
    /// Events whose time lies before that of the event before in their stream.
    pub steps_back: u64,
    /// Calls without an end.
    pub unfinished_calls: u64,
    /// Ends of calls without a beginning.
    pub orphaned_ends: u64,
}

/// A fault, however often it was found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Its rule's id.
    pub rule: &'static str,
    /// How severe it is.
    pub severity: Severity,
    /// What is wrong, of the first occurrence.
    pub message: String,
    /// What to do.
    pub remedy: &'static str,
    /// Why it may be wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// How often.
    pub count: u64,
    /// Nanoseconds that it costs at most, where that is known; the rule says of what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ns: Option<u64>,
    /// `cost_ns` as a part of the time from the first event to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The first of them.
    pub occurrences: Vec<Occurrence>,
}

/// The calls that show a fault.
#[derive(Clone, Debug, Serialize)]
pub struct Occurrence {
    /// The one at fault first.
    pub calls: Vec<Evidence>,
}

/// A call that shows a fault.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// What it has to do with it.
    pub part: &'static str,
    /// When it began, in nanoseconds since the first event.
    pub time_ns: u64,
    /// Its process.
    pub pid: i64,
    /// Its thread.
    pub tid: i64,
    /// The function's name; empty if it is not known.
    pub function: String,
    /// The call with its arguments.
    pub call: String,
    /// The Python stack that made it, the innermost frame first; empty if it is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<CodeFrame>,
    /// The native stack that made it, the innermost frame first, with the Python frames among it; empty if it is not
    /// known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<CodeFrame>,
}

impl Evidence {
    /// All that is known of the code that made it, the innermost frame first.
    pub fn frames(&self) -> &[CodeFrame] {
        if self.stack.is_empty() { &self.python } else { &self.stack }
    }

    /// The frame that stands for all: the innermost Python frame; else the innermost one whose line is known, or any.
    pub fn innermost(&self) -> Option<&CodeFrame> {
        let native = || self.stack.iter().find(|frame| frame.line > 0).or(self.stack.first());
        self.python.first().or_else(native)
    }
}

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeFrame {
    /// As the code names it; empty if it is not known.
    pub file: String,
    /// 0 if it is not known.
    pub line: u32,
    /// The function's name; of native code without one the place in the program or library.
    pub function: String,
    /// The program or library of native code.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
}

impl CodeFrame {
    fn new(frame: &Frame) -> Self {
        let text = |text: &str| text.to_owned();
        Self {
            file: text(&frame.file),
            line: frame.line,
            function: text(&frame.name),
            module: text(&frame.module),
        }
    }

    /// The place, if it is one in a file: code may be made of texts, which have names such as `<string>`.
    pub fn in_file(&self) -> Option<(&str, u32)> {
        let is_file = !self.file.is_empty() && !self.file.starts_with('<');
        (is_file && self.line > 0).then_some((&self.file, self.line))
    }
}

impl Report {
    /// The highest severity that was found.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Frames of a stack that a finding has, at most.
const FRAMES: usize = 100;

pub(super) fn report(
    trace: &Trace,
    linter: &Linter<'_>,
    calls: &HashMap<Key, Shown>,
    summary: &Summary,
    (doubt, chosen): (Option<String>, bool),
) -> Report {
    let start = summary.first.unwrap_or(0);
    let stacks = trace.names().stacks();
    let listed =
        |frames: Vec<&Frame>| frames.into_iter().take(FRAMES).map(CodeFrame::new).collect::<Vec<_>>();
    let evidence = |&(part, call): &(&'static str, Ref)| {
        let shown = calls.get(&(call.pid, call.tid, call.start)).cloned().unwrap_or_default();
        Evidence {
            part,
            time_ns: call.start.saturating_sub(start),
            pid: call.pid,
            tid: call.tid,
            function: super::walk::name_of(trace, call.function).to_owned(),
            call: shown.text,
            python: listed(stacks.python_frames(shown.stack)),
            stack: if shown.stack.native == 0 { Vec::new() } else { listed(stacks.frames(shown.stack)) },
        }
    };
    let run = summary.last.unwrap_or(start).saturating_sub(start);
    let mut passed_over = Vec::new();
    let findings = linter.findings.all.iter().filter_map(|folded| {
        let rule = RULES.get(folded.rule)?;
        if !chosen && folded.severity == Severity::Hint && is_little(folded, rule.id, run) {
            passed_over.push(rule.id);
            return None;
        }
        let missing = doubt.as_ref().filter(|_| rule.needs_all);
        let occurrences =
            folded.occurrences.iter().map(|calls| Occurrence { calls: calls.iter().map(evidence).collect() });
        Some(Finding {
            rule: rule.id,
            severity: if missing.is_some() { folded.severity.lowered() } else { folded.severity },
            message: folded.what.clone(),
            remedy: rule.remedy,
            doubt: missing.cloned().or(folded.doubt.map(str::to_owned)),
            count: folded.count,
            cost_ns: folded.cost,
            share: folded.cost.filter(|_| run > 0).map(|cost| cost as f64 / run as f64),
            occurrences: occurrences.collect(),
        })
    });
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by(|a, b| {
        let rank = |f: &Finding| (f.severity, f.cost_ns.unwrap_or(0));
        rank(b).cmp(&rank(a)).then_with(|| a.rule.cmp(b.rule)).then_with(|| a.message.cmp(&b.message))
    });
    let of = |severity| findings.iter().filter(|f| f.severity == severity).count() as u64;
    let notes = notes(trace, linter, summary, doubt, little(&mut passed_over));
    Report {
        schema: SCHEMA,
        command: trace.manifest().command.clone(),
        errors: of(Severity::Error),
        warnings: of(Severity::Warning),
        hints: of(Severity::Hint),
        findings,
        notes,
        missing: missing(summary),
    }
}

/// Runs shorter than this are mostly start and end: shares of them say little.
const LONG: u64 = 1_000_000_000;
/// Less than one part of so many is not worth a word.
const PARTS: u64 = 100;
/// Events that nobody looks at, in a second.
const EVENTS: u64 = 1_000;

/// Whether a hint is about so little of a run's time that nobody would notice.
fn is_little(folded: &Folded, rule: &str, run: u64) -> bool {
    run >= LONG
        && match folded.cost {
            Some(cost) => cost.saturating_mul(PARTS) < run,
            None if rule == "event-unused" => folded.count < run / 1_000_000_000 * EVENTS,
            None => false,
        }
}

/// Says which hints were passed over.
fn little(rules: &mut Vec<&'static str>) -> Option<String> {
    let hints = hetrace_trace::text::plural(rules.len() as u64, "hint");
    rules.sort_unstable();
    rules.dedup();
    let names = rules.join(",");
    (!rules.is_empty()).then(|| format!("{hints} about less than 1 % of the run: --rule {names} shows them."))
}

/// What was not looked at, and why findings may be wrong.
fn notes(
    trace: &Trace,
    linter: &Linter<'_>,
    summary: &Summary,
    doubt: Option<String>,
    little: Option<String>,
) -> Vec<String> {
    let start = summary.first.unwrap_or(0);
    let mut notes = linter.notes.clone();
    notes.extend(little);
    if !summary.is_complete() {
        notes.push(format!("Incomplete: {}.", summary.what_is_missing()));
    }
    if let Some(doubt) = doubt {
        notes
            .push(format!("Calls may be missing ({doubt}): findings that need all of them are graded down."));
    }
    if let Some(covered) = Covered::of(trace, start, summary.last.unwrap_or(start)) {
        notes.push(format!(
            "{covered} Only rules that look at each call by itself, and at leaks, are applied."
        ));
    }
    if trace.lacks_manifest() {
        notes.push("The manifest is missing: the end of the program was not seen.".to_owned());
    }
    notes
}

fn missing(summary: &Summary) -> Missing {
    Missing {
        lost_events: summary.lost_events,
        lost_calls: summary.lost_calls,
        lost_commands: summary.lost_commands,
        lost_processes: summary.lost_processes,
        lost_packets: summary.lost_packets,
        damaged: summary.damaged,
        differences: summary.differences,
        steps_back: summary.steps_back,
        unfinished_calls: summary.unfinished,
        orphaned_ends: summary.orphans,
    }
}
