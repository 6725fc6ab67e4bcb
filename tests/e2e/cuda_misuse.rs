//! `hetrace lint` on programs with a planted misuse of CUDA each, and on the same work done right, on the fake driver.

#[path = "cuda/run.rs"]
mod run;

use std::process::Command;

use hetrace_tests::hetrace;
use serde_json::Value;

/// What `misuse` does wrong: mode, rule, the severity.
const MISUSE: [(&str, &str, &str); 19] = [
    ("after", "use-after-release", "error"),
    ("twice", "double-release", "error"),
    ("bounds", "out-of-bounds", "error"),
    ("memory", "leak", "warning"),
    ("streams", "leak", "warning"),
    ("events", "leak", "warning"),
    ("grows", "leak", "warning"),
    ("pool", "leak", "hint"),
    ("dead", "use-after-release", "error"),
    ("host", "race", "error"),
    ("race", "race", "error"),
    ("nothing", "uninitialized-read", "warning"),
    ("legacy", "default-stream", "hint"),
    ("error", "ignored-error", "warning"),
    ("wait", "double-wait", "hint"),
    ("sync", "sync-after-launch", "hint"),
    ("finish", "redundant-sync", "hint"),
    ("loop", "alloc-in-loop", "hint"),
    ("pageable", "pageable-async", "warning"),
];

/// The rules and severities of what is found.
fn found(arguments: &[&str]) -> Vec<(String, String)> {
    found_with(&["--buffer", "8192"], arguments)
}

fn found_with(options: &[&str], arguments: &[&str]) -> Vec<(String, String)> {
    let run = run::run_with(options, "auto", &[&["misuse"][..], arguments].concat(), &[]);
    assert_eq!(run.done.status, 0, "{arguments:?}: {}", run.done.err);
    let mut lint = Command::new(hetrace());
    lint.args(["lint", "--json", "--fail-on", "never"]).arg(run.scratch.path().join("trace"));
    let done = hetrace_tests::bed::run(&mut lint);
    let report: Value = serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {}", done.err));
    let text = |finding: &Value, what: &str| finding[what].as_str().expect("text").to_owned();
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.map(|finding| (text(finding, "rule"), text(finding, "severity"))).collect()
}

#[test]
fn each_misuse_is_found_and_nothing_where_it_is_done_right() {
    let mut wrong: Vec<String> = Vec::new();
    for (mode, rule, severity) in MISUSE {
        let right = found(&[mode, "right"]);
        if !right.is_empty() {
            wrong.push(format!("{mode} done right: {right:?}"));
        }
        let all = found(&[mode]);
        if all != [(rule.to_owned(), severity.to_owned())] {
            wrong.push(format!("{mode}: {all:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_sent_again_is_found_by_its_hash() {
    let again = [("same-bytes".to_owned(), "hint".to_owned())];
    assert_eq!(found_with(&["--hash-copies"], &["again"]), again);
    assert_eq!(found_with(&["--hash-copies"], &["again", "right"]), [], "one byte is another");
}
