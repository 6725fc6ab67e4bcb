//! Signals, stops and ends of a traced job are those of the program.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, hetrace};

fn job(scratch: &Path, scenario: &str, arguments: &[&str], traced: bool) -> Done {
    let mut command = Command::new("python3");
    command.arg(program("jobs.py")).arg(scenario).current_dir(scratch);
    if traced {
        command.arg(hetrace()).args(["run", "-q", "-o", "trace", "--"]);
    }
    run(command.arg(program("signalled")).args(arguments))
}

#[track_caller]
fn same(scenario: &str, arguments: &[&str], expected: &str) {
    let scratch = tempfile::tempdir().expect("scratch");
    let bare = job(scratch.path(), scenario, arguments, false);
    assert!(bare.out.ends_with(expected), "{}{}", bare.out, bare.err);
    let traced = job(scratch.path(), scenario, arguments, true);
    // On a terminal the report comes after the program's last line.
    let report = |line: &&str| !line.starts_with("hetrace:");
    let seen: Vec<&str> = traced.out.lines().filter(report).collect();
    assert_eq!(bare.out.lines().collect::<Vec<_>>(), seen, "{}", traced.err);
    let manifest = std::fs::read_to_string(scratch.path().join("trace/hetrace/manifest.json"));
    assert!(manifest.expect("a manifest").contains("\"exit\": {"), "the trace is complete");
}

#[test]
fn what_is_sent_to_the_launcher_comes_to_the_program() {
    same("each", &[], "got 15\nstatus 3\n");
}

#[test]
fn keys_of_the_terminal_come_once() {
    same("terminal", &[], "status 3\n");
}

#[test]
fn a_program_that_stops_itself_is_a_stopped_job() {
    same("stops", &["19", "20", "21"], "after 21\nstatus 4\n");
}

#[test]
fn a_program_that_its_child_stops_and_continues_goes_on() {
    same("ends", &["child"], "on\nstatus 6\n");
}

#[test]
fn a_signal_that_ends_the_program_is_the_jobs_end() {
    same("ends", &["11"], "signal 11\n");
    same("ends", &["10"], "signal 10\n");
    same("ends", &["40"], "signal 40\n");
    same("ends", &["9"], "signal 9\n");
}
