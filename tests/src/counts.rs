//! What the trace holds, compared with what the program says it has called.

use std::collections::BTreeMap;
use std::path::Path;

use crate::expect::Expected;
use crate::seen::Seen;

/// A line of `tests/programs/check/runs.txt`.
#[derive(Debug, Clone)]
pub struct Line {
    /// A test program and its arguments.
    pub command: Vec<&'static str>,
    /// How it ends, as a shell shows it.
    pub end: i32,
    /// It needs PoCL.
    pub pocl: bool,
}

/// All lines.
pub fn lines() -> Vec<Line> {
    let text = include_str!("../programs/check/runs.txt");
    let line = |line: &'static str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [command @ .., end, place] = &words[..] else { panic!("{line}") };
        Line { command: command.to_vec(), end: end.parse().expect("a status"), pocl: *place == "pocl" }
    };
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(line).collect()
}

/// Calls that must not be compared: made through pointers, where some
/// platforms answer with functions of their own making.
fn comparable(name: &str) -> bool {
    !name.starts_with("clIcdGetPlatformIDs")
}

/// The manifest of a trace.
pub fn manifest(trace: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(trace.join("hetrace/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

/// Whether every call that a program's output lists was recorded once, by
/// the process that made it.
///
/// # Errors
/// What is not as it should be.
pub fn complete(trace: &Path, out: &str) -> Result<(), String> {
    let seen = Seen::read(trace);
    if !seen.damage.is_empty() || seen.disorder > 0 || seen.discarded > 0 {
        let (disorder, lost) = (seen.disorder, seen.discarded);
        return Err(format!("damage {:?}, {disorder} out of order, {lost} lost", seen.damage));
    }
    let losses = &manifest(trace)["losses"];
    for what in ["records", "calls", "calls_without_ring", "unwritten_bytes", "damaged_bytes"] {
        if losses[what] != 0 {
            return Err(format!("losses: {losses}"));
        }
    }
    let expected = Expected::parse(out);
    let (mut want, mut got) = (expected.0.clone(), seen.calls.clone());
    if want.keys().all(|pid| *pid == 0) {
        (want, got) = (BTreeMap::from([(0, expected.total())]), BTreeMap::from([(0, seen.total())]));
    }
    for calls in [&mut want, &mut got] {
        calls.values_mut().for_each(|c| c.retain(|name, _| comparable(name)));
        calls.retain(|_, c| !c.is_empty());
    }
    if want == got { Ok(()) } else { Err(format!("called {want:?}\n   recorded {got:?}")) }
}
