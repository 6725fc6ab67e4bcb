//! What reports say of a trace, and what the program itself has said.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bed::{Done, hetrace, run};

/// What a command prints of a trace that ends well: its name, and options that stand behind the trace.
pub fn report(trace: &Path, arguments: &[&str]) -> String {
    let done = asked(trace, arguments);
    assert_eq!(done.status, 0, "{arguments:?}: {}", done.err);
    done.out
}

/// The same of a command that may have found something.
pub fn findings(trace: &Path, arguments: &[&str]) -> String {
    let done = asked(trace, arguments);
    assert!(matches!(done.status, 0 | 1), "{arguments:?}: {}", done.err);
    done.out
}

fn asked(trace: &Path, arguments: &[&str]) -> Done {
    let (command, options) = arguments.split_first().expect("a command");
    run(Command::new(hetrace()).arg(command).arg(trace).args(options))
}

/// The tables of a trace.
pub fn tally(trace: &Path) -> Value {
    serde_json::from_str(&report(trace, &["tally", "--json"])).expect("JSON")
}

/// Calls by function, as tables have them; failed ones, too.
pub fn recorded(tally: &Value) -> BTreeMap<String, u64> {
    let count = |row: &Value| {
        let calls = row["calls"].as_u64().expect("a number");
        (row["name"].as_str().expect("a name").to_owned(), calls)
    };
    tally["host"].as_array().expect("rows").iter().map(count).collect()
}

/// Calls by function, as the program has counted them: lines `calls NAME NUMBER` of its output.
pub fn counted(out: &str) -> BTreeMap<String, u64> {
    let count = |line: &str| {
        let (name, calls) = line.strip_prefix("calls ")?.split_once(' ')?;
        Some((name.to_owned(), calls.parse().ok()?))
    };
    out.lines().filter_map(count).collect()
}

/// Fails unless a text has lines with these texts, in this order; `…` stands for anything.
pub fn expect_lines(text: &str, expected: &[&str]) {
    let mut lines = text.lines();
    for want in expected {
        let is_it = |line: &str| {
            let rest = want.split('…').try_fold(line, |rest, part| Some(rest.split_once(part)?.1));
            rest.is_some()
        };
        assert!(lines.any(is_it), "{want}, in its place:\n{text}");
    }
}
