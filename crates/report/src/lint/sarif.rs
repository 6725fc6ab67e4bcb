//! Findings as SARIF 2.1.0, for tools that gather results of many checkers.
//!
//! Places are logical ones: the function that the program called, inside its thread and process. Where the trace has the
//! stacks of calls, they are lines of files, too, and results have the stacks.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::report::{CodeFrame, Evidence, Finding, Report};
use super::rules::{RULES, Rule, Severity, position};

impl Report {
    /// One SARIF log with one run.
    pub fn sarif(&self) -> Value {
        let notes = self.notes.iter().map(|note| json!({"level": "note", "message": {"text": note}}));
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": "hetrace lint",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": RULES.iter().map(rule).collect::<Vec<_>>(),
                }},
                "invocations": [{
                    "executionSuccessful": true,
                    "toolExecutionNotifications": notes.collect::<Vec<_>>(),
                }],
                "results": self.findings.iter().map(result).collect::<Vec<_>>(),
            }],
        })
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    }
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "help": {"text": rule.remedy},
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"group": rule.group.name()},
    })
}

fn result(finding: &Finding) -> Value {
    let firsts = finding.occurrences.iter().filter_map(|occurrence| occurrence.calls.first());
    let others = finding.occurrences.iter().flat_map(|o| o.calls.iter().skip(1));
    let mut text = finding.message.clone();
    if let Some(doubt) = &finding.doubt {
        text.push_str(" (doubt: ");
        text.push_str(doubt);
        text.push(')');
    }
    text.push_str(". ");
    text.push_str(finding.remedy);
    let mut properties = json!({});
    if let Some(cost) = finding.cost_ns {
        properties["costNs"] = cost.into();
    }
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": position(finding.rule),
        "level": level(finding.severity),
        "message": {"text": text},
        "occurrenceCount": finding.count.max(1),
        "locations": firsts.map(|call| location(call, None)).collect::<Vec<_>>(),
        "relatedLocations": others.zip(1..).map(|(call, id)| location(call, Some(id))).collect::<Vec<_>>(),
        "properties": properties,
    });
    let calls = finding.occurrences.iter().filter_map(|occurrence| occurrence.calls.first());
    let stacks: Vec<Value> = calls.filter(|call| !call.frames().is_empty()).map(stack).collect();
    if !stacks.is_empty() {
        result["stacks"] = stacks.into();
    }
    result
}

/// The stack of a call.
fn stack(call: &Evidence) -> Value {
    let frame = |frame: &CodeFrame| {
        let mut location = json!({"logicalLocations": [{"name": frame.function, "kind": "function"}]});
        if let Some(place) = physical(frame) {
            location["physicalLocation"] = place;
        }
        json!({"location": location})
    };
    json!({
        "message": {"text": format!("{}: stack of {}", call.part, call.function)},
        "frames": call.frames().iter().map(frame).collect::<Vec<_>>(),
    })
}

/// A line of a file.
fn physical(frame: &CodeFrame) -> Option<Value> {
    let (file, line) = frame.in_file()?;
    let uri = if file.starts_with('/') { format!("file://{}", escaped(file)) } else { escaped(file) };
    Some(json!({"artifactLocation": {"uri": uri}, "region": {"startLine": line}}))
}

/// A path as a part of a URI.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte.into())
            }
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

fn location(call: &Evidence, id: Option<u64>) -> Value {
    let mut location = json!({
        "logicalLocations": [{
            "name": call.function,
            "fullyQualifiedName": format!("process {}/thread {}/{}", call.pid, call.tid, call.function),
            "kind": "function",
        }],
        "message": {"text": format!("{}: {}", call.part, call.call)},
        "properties": {"timeNs": call.time_ns},
    });
    if let Some(place) = call.innermost().and_then(physical) {
        location["physicalLocation"] = place;
    }
    if let Some(id) = id {
        location["id"] = id.into();
    }
    location
}
