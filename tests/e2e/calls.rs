//! Every hard case of interposition: what the trace holds is what the program
//! says it has called, and the program ends as it does without us.
//!
//! The programs and how they end are in `tests/programs/check/runs.txt`.

use hetrace_tests::counts::{Line, complete, lines};
use hetrace_tests::{Expected, Platform, trace_with};

fn check(platform: Platform) {
    let mut failures = Vec::new();
    let lines: Vec<Line> = lines().into_iter().filter(|l| platform == Platform::Pocl || !l.pocl).collect();
    assert!(lines.len() > 30, "only {} runs", lines.len());
    for line in &lines {
        if let Err(what) = one(platform, line) {
            failures.push(format!("{}: {what}", line.command.join(" ")));
        }
    }
    assert!(failures.is_empty(), "{platform:?}:\n{}", failures.join("\n"));
}

fn one(platform: Platform, line: &Line) -> Result<(), String> {
    // Room for a busy test machine, on which the drainer may have to wait.
    let traced = trace_with(platform, &["--buffer", "8192"], &line.command);
    if traced.done.status != line.end {
        return Err(format!("ended with {}, not {}: {}", traced.done.status, line.end, traced.done.err));
    }
    if Expected::parse(&traced.done.out).0.is_empty() && line.command[0] != "static" {
        return Err("the program said nothing".to_owned());
    }
    complete(&traced.folder, &traced.done.out)?;
    // A call that never returned is the last thing a dying thread did.
    let seen = traced.seen();
    let began: u64 = seen.total().values().sum();
    let ended: u64 = seen.ended.values().sum();
    let unfinished = began - ended;
    let may = u64::from(line.command == ["ending", "hang"]);
    if unfinished != may && line.command[0] != "lifecycle" {
        return Err(format!("{unfinished} calls without an end"));
    }
    Ok(())
}

#[test]
fn what_is_recorded_is_what_was_called_on_pocl() {
    check(Platform::Pocl);
}

#[test]
fn what_is_recorded_is_what_was_called_on_oclgrind() {
    check(Platform::Oclgrind);
}

#[test]
fn what_is_recorded_is_what_was_called_on_both_at_once() {
    check(Platform::Both);
}
