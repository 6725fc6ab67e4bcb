//! Commands on devices: all of them, with times that can be true.

use std::collections::BTreeMap;

use hetrace_tests::seen::Command;
use hetrace_tests::{Platform, Traced, trace, trace_with};
use serde_json::json;

/// No command may be before its call, nor before itself.
fn check_order(traced: &Traced) -> Vec<Command> {
    let seen = traced.seen();
    assert_eq!(seen.disorder, 0, "each stream is in time order");
    let error: u64 = traced.manifest()["device_clocks"]
        .as_array()
        .expect("clocks")
        .iter()
        .map(|c| c["error_ns"].as_u64().expect("a clock that is known"))
        .max()
        .unwrap_or(0);
    for c in seen.commands.iter().filter(|c| c.kind != "untimed") {
        assert!(c.queued <= c.submitted && c.submitted <= c.start && c.start <= c.end, "{c:?}");
        assert!(c.cause <= c.queued + error, "queued before the call that enqueued it: {c:?}, error {error}");
        let entries = &seen.entries[&(c.pid, c.cause_tid)];
        let cause = entries.binary_search_by_key(&c.cause, |(time, _)| *time);
        let cause = cause.unwrap_or_else(|_| panic!("no call at the time of the cause: {c:?}"));
        let (_, function) = &entries[cause];
        assert!(function.starts_with("clEnqueue"), "{function} enqueues nothing");
    }
    seen.commands
}

fn by_kind(commands: &[Command]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for c in commands {
        *counts.entry(c.kind.as_str()).or_default() += 1;
    }
    counts
}

#[test]
fn the_articles_iteration_has_a_kernel_and_a_read_each_on_pocl() {
    let traced = trace(Platform::Pocl, &["linked", "200", "10", "10"]);
    let commands = check_order(&traced);
    assert_eq!(by_kind(&commands), BTreeMap::from([("kernel", 200), ("read", 200)]));
    for c in &commands {
        if c.kind == "kernel" {
            assert!(!c.name.is_empty());
            assert!(c.global.iter().product::<u64>() >= 100, "{c:?}");
        } else {
            assert!(c.bytes >= 100, "{c:?}");
        }
        assert_eq!(c.status, 0);
    }
    let clocks = traced.manifest()["device_clocks"].clone();
    let error = clocks[0]["error_ns"].as_u64().expect("known");
    // 20 µs on a machine with nothing else to do; at worst what the longest call allows.
    assert!(error < 5_000_000, "PoCL's clock is known to {error} ns");
}

#[test]
fn a_long_loop_of_waits_has_its_commands_all_the_same() {
    let traced = trace(Platform::Pocl, &["linked", "5000", "10", "10"]);
    let commands = check_order(&traced);
    assert_eq!(by_kind(&commands), BTreeMap::from([("kernel", 5000), ("read", 5000)]));
    assert_eq!(traced.manifest()["losses"]["commands_in_flight"], 0);
    let error = traced.manifest()["device_clocks"][0]["error_ns"].as_u64().expect("known");
    assert!(error < 5_000_000, "PoCL's clock is known to {error} ns");
}

#[test]
fn the_articles_iteration_has_a_kernel_and_a_read_each_on_oclgrind() {
    let traced = trace(Platform::Oclgrind, &["linked", "20", "10", "10"]);
    assert_eq!(by_kind(&check_order(&traced)), BTreeMap::from([("kernel", 20), ("read", 20)]));
}

#[test]
fn two_implementations_with_different_clocks_share_a_time_line() {
    let traced = trace(Platform::Both, &["queues"]);
    let commands = check_order(&traced);
    let devices: std::collections::BTreeSet<u64> = commands.iter().map(|c| c.device).collect();
    assert!(devices.len() >= 2, "{devices:?}");
    let kinds = by_kind(&commands);
    for kind in ["kernel", "read", "write", "copy", "fill", "map", "unmap", "marker", "barrier", "migrate"] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
    assert!(commands.iter().any(|c| c.status < 0), "failed commands are there, as failed");
}

#[test]
fn images_have_their_bytes() {
    let commands = check_order(&trace(Platform::Pocl, &["images"]));
    let moved = commands.iter().filter(|c| matches!(&*c.kind, "read" | "write" | "copy"));
    for c in moved {
        assert!(c.bytes > 0, "{c:?}");
    }
}

#[test]
fn a_program_that_releases_nothing_has_its_commands_all_the_same() {
    let traced = trace(Platform::Pocl, &["ending", "norelease"]);
    let finished = check_order(&traced).len() as u64;
    let in_flight = traced.manifest()["losses"]["commands_in_flight"].as_u64().expect("a number");
    assert_eq!(finished + in_flight, 11, "{in_flight} in flight");
    assert!(in_flight >= 1, "the last one never runs");
}

#[test]
fn without_devices_there_are_no_commands() {
    let traced = trace_with(Platform::Pocl, &["--no-device"], &["linked", "20"]);
    let seen = traced.seen();
    assert!(seen.commands.is_empty());
    assert_eq!(seen.total()["clEnqueueNDRangeKernel"], 20);
}

/// Kernels that are all in flight before the first of them runs.
fn in_flight(options: &[&str], mode: &str) -> Traced {
    let traced = trace_with(Platform::Pocl, options, &["inflight", "60000", mode]);
    assert_eq!(traced.done.status, 0, "{}", traced.done.err);
    traced
}

fn check_in_flight(mode: &str) {
    let traced = in_flight(&["-q", "--buffer", "8192"], mode);
    assert_eq!(by_kind(&check_order(&traced)), BTreeMap::from([("kernel", 60_000)]), "{mode}");
    let losses = &traced.manifest()["losses"];
    assert_eq!((&losses["device_commands"], &losses["commands_in_flight"]), (&json!(0), &json!(0)), "{mode}");
    assert!(!traced.done.err.contains("LOST"), "{}", traced.done.err);
}

#[test]
fn commands_are_all_there_however_many_are_in_flight() {
    check_in_flight("plain");
}

#[test]
fn commands_of_a_queue_without_order_are_all_there() {
    check_in_flight("unordered");
}

#[test]
fn commands_with_events_of_the_program_are_all_there() {
    check_in_flight("events");
}

#[test]
fn commands_of_threads_that_have_ended_are_all_there() {
    check_in_flight("threads");
}

/// The ring takes a small part of the records; the others wait for their turn.
#[test]
fn commands_are_all_there_in_a_small_ring() {
    let traced = in_flight(&["-q", "--on-full", "block", "--buffer", "64"], "plain");
    assert_eq!(check_order(&traced).len(), 60_000);
}

#[test]
fn commands_beyond_the_bound_are_counted_and_said() {
    for quiet in [&["-q"][..], &[]] {
        let options = [quiet, &["--buffer", "8192", "--max-in-flight", "1000"]].concat();
        let traced = in_flight(&options, "plain");
        assert_eq!(check_order(&traced).len(), 1_000);
        let losses = &traced.manifest()["losses"];
        assert_eq!(losses["device_commands"], 59_000);
        assert_eq!(losses["commands_in_flight"], 0);
        let report = &traced.done.err;
        assert_eq!(report.matches("LOST: 59000 device commands").count(), 1, "{report}");
        let note = "more than 1000 commands were in flight";
        // As a note of the launcher's, and below the tables.
        assert_eq!(report.matches(note).count(), if quiet.is_empty() { 2 } else { 1 }, "{report}");
        assert!(report.contains("(--max-in-flight N allows more)"), "{report}");
    }
}
