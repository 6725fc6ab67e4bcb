//! `hetrace diff` on what was recorded: rows by name whatever the process, exit statuses, bad input.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::{Platform, hetrace, trace, trace_with};
use serde_json::Value;

fn diff(options: &[&str], a: &[&Path], b: &[&Path]) -> Done {
    run(Command::new(hetrace()).arg("diff").args(options).args(a).arg("--").args(b))
}

fn json(options: &[&str], a: &[&Path], b: &[&Path]) -> Value {
    let done = diff(&[&["--json"], options].concat(), a, b);
    assert_eq!(done.status, 0, "{}", done.err);
    serde_json::from_str(&done.out).expect("one JSON object")
}

fn rows<'v>(report: &'v Value, by: &str, which: &str) -> &'v Vec<Value> {
    let tables = report["tables"].as_array().expect("tables");
    let table = tables.iter().find(|t| t["by"] == by).unwrap_or_else(|| panic!("no table by {by}"));
    table[which].as_array().expect("rows")
}

#[test]
fn other_processes_have_the_same_rows() {
    let few = [50, 50].map(|_| trace(Platform::Pocl, &["linked", "50"]));
    let many = [60, 60].map(|_| trace(Platform::Pocl, &["linked", "60"]));
    let [a, b] = [&few, &many].map(|side| side.each_ref().map(|t| t.folder.as_path()));
    let report = json(&["--by", "kernel,copy,path,name,api"], &a, &b);
    // Two runs of each show little; and what tracing took.
    assert_eq!((&report["schema"], &report["notes"].as_array().map(Vec::len)), (&Value::from(2), &Some(2)));
    for by in ["kernel", "copy", "path", "name", "api"] {
        assert!(!rows(&report, by, "rows").is_empty(), "{by}");
        assert_eq!(
            (rows(&report, by, "appeared").len(), rows(&report, by, "vanished").len()),
            (0, 0),
            "{by}"
        );
    }
    let launch = rows(&report, "path", "rows")
        .iter()
        .find(|row| row["path"][0]["name"] == "clEnqueueNDRangeKernel")
        .expect("a row");
    assert_eq!((launch["a_calls"].as_f64(), launch["b_calls"].as_f64()), (Some(50.0), Some(60.0)));
    assert_eq!(launch["a_runs_ns"].as_array().map(Vec::len), Some(2));
    assert!(launch["low_ns"].as_f64() <= launch["high_ns"].as_f64() && launch["low_ns"].is_f64());
    let kernel = &rows(&report, "kernel", "rows")[0];
    assert_eq!((kernel["a_calls"].as_f64(), kernel["b_calls"].as_f64()), (Some(50.0), Some(60.0)));
    let [change, by_calls, by_time] = ["change_ns", "by_calls_ns", "by_time_ns"].map(|m| kernel[m].as_f64());
    let parts = by_calls.zip(by_time).map(|(calls, time)| calls + time);
    assert!(change.zip(parts).is_some_and(|(change, parts)| (change - parts).abs() < 1.0), "{kernel}");
}

#[test]
fn the_status_says_what_is_worse() {
    let with = trace(Platform::Pocl, &["linked", "20"]);
    let without = trace_with(Platform::Pocl, &["--no-device"], &["linked", "20"]);
    let (with, without) = (with.folder.as_path(), without.folder.as_path());
    // With itself nothing is slower, and of one run there is a warning.
    let same = diff(&["--fail-on", "0%", "--metric", "wall,device,host,rows"], &[with], &[with]);
    assert_eq!(same.status, 0, "{}", same.err);
    assert!(same.err.contains("one run on a side") && same.out.contains("OK"), "{}", same.err);
    // Kernels that A did not record are new in B, and that is worse than any limit.
    let limit = ["--by", "kernel", "--metric", "rows,device", "--fail-on", "1000%"];
    let worse = diff(&limit, &[without], &[with]);
    assert_eq!(worse.status, 1, "{}", worse.err);
    assert!(worse.err.contains("slower by more than 1000%: devices busy: new"), "{}", worse.err);
    assert_eq!(diff(&limit, &[with], &[without]).status, 0);
    // Nobody reads the tables: the status is the same.
    let line = format!(
        "'{}' diff --fail-on 1% --metric device '{}' '{}' | true; exit ${{PIPESTATUS[0]}}",
        hetrace().display(),
        without.display(),
        with.display()
    );
    assert_eq!(run(Command::new("bash").args(["-c", &line])).status, 1);
}

#[test]
fn files_of_sums_are_runs() {
    let traced = trace(Platform::Pocl, &["linked", "20"]);
    let scratch = tempfile::tempdir().expect("scratch");
    let file = scratch.path().join("sums.agg");
    let saved = run(Command::new(hetrace()).arg("tally").arg(&traced.folder).arg("--save").arg(&file));
    assert_eq!(saved.status, 0, "{}", saved.err);
    let report = json(&[], &[&traced.folder], &[&file]);
    for by in ["kernel", "copy", "name"] {
        let rows = rows(&report, by, "rows");
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| row["change_ns"] == 0.0), "{by}");
    }
    let asked = diff(&["--fail-on", "1", "--metric", "device"], &[&traced.folder], &[&file]);
    assert_eq!(asked.status, 125);
    assert!(asked.err.contains("`device` cannot be compared"), "{}", asked.err);
}

#[test]
fn bad_lines_get_clear_words() {
    let traced = trace(Platform::Pocl, &["linked", "1"]);
    let folder = traced.folder.as_path();
    let none = folder.join("none");
    let missing = diff(&[], &[folder], &[&none]);
    assert_eq!((missing.status, missing.err.lines().count()), (125, 1), "{}", missing.err);
    let twice = diff(&[], &[folder, folder], &[folder]);
    assert_eq!(twice.status, 0);
    assert!(twice.err.contains("given twice in A"), "{}", twice.err);
    let behind = diff(&[], &[folder], &[folder, Path::new("--fail-on")]);
    assert_eq!(behind.status, 2);
    assert!(behind.err.contains("put options before it"), "{}", behind.err);
    let alone = run(Command::new(hetrace()).arg("diff").arg(folder));
    assert_eq!(alone.status, 2);
    assert!(alone.err.contains("no runs of B"), "{}", alone.err);
    assert_eq!(diff(&["--fail-on", "much"], &[folder], &[folder]).status, 2);
}
