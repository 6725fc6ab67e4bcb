//! What happens when a ring is full, and how polls are folded.

use hetrace_tests::{Expected, Platform, programs, trace, trace_with};

/// A command line during which the launcher gets no processor at all: a script stops it, so this does not depend on
/// how fast anything is.
fn while_the_launcher_sleeps(polls: u32) -> String {
    format!("kill -STOP $PPID; '{}' user {polls}; kill -CONT $PPID", programs().join("polls").display())
}

#[test]
fn a_tiny_ring_loses_records_and_says_how_many() {
    let line = ["/bin/sh", "-c", &while_the_launcher_sleeps(200_000)];
    let traced = trace_with(Platform::Pocl, &["--buffer", "4", "-m", "full"], &line);
    assert_eq!(traced.done.status, 0);
    let seen = traced.seen();
    assert!(seen.damage.is_empty() && seen.disorder == 0);
    let lost = traced.manifest()["losses"]["records"].as_u64().expect("a number");
    let expected: u64 = Expected::parse(&traced.done.out).total().values().sum();
    let recorded: u64 = seen.total().values().sum();
    assert!(recorded < expected, "a ring of 4 KiB can't hold this");
    assert!(lost > 0);
    // A lost entry takes its exit with it and counts once; a lost exit counts once.
    let ended: u64 = seen.ended.values().sum();
    assert_eq!(lost, (expected - recorded) + (recorded - ended), "every missing record is counted");
    assert!(seen.discarded > 0, "the packets say so, too");
}

/// The program records some MiB meanwhile.
#[test]
fn a_burst_that_the_launcher_sleeps_through_is_whole() {
    let script = while_the_launcher_sleeps(150_000);
    let sleeping = |buffer: &str| {
        let options = ["-m", "full", "--buffer", buffer];
        let traced = trace_with(Platform::Pocl, &options, &["/bin/sh", "-c", &script]);
        assert_eq!(traced.done.status, 0, "{}", traced.done.err);
        let lost = traced.manifest()["losses"]["records"].as_u64().expect("a number");
        (lost, traced.seen(), Expected::parse(&traced.done.out).total())
    };
    let (lost, seen, expected) = sleeping("1024");
    assert_eq!((lost, seen.disorder, seen.discarded), (0, 0, 0));
    assert!(seen.damage.is_empty(), "{:?}", seen.damage);
    assert_eq!(seen.total(), expected);
    // Larger rings end somewhere, and then it is said.
    let (lost, seen, expected) = sleeping("16");
    let (recorded, expected): (u64, u64) = (seen.total().values().sum(), expected.values().sum());
    let ended: u64 = seen.ended.values().sum();
    assert!(lost > 0);
    assert_eq!(lost, (expected - recorded) + (recorded - ended), "every missing record is counted");
}

#[test]
fn a_program_that_may_wait_loses_nothing() {
    let options = ["--buffer", "4", "-m", "full", "--on-full", "block"];
    let traced = trace_with(Platform::Pocl, &options, &["polls", "user", "100000"]);
    assert_eq!(traced.manifest()["losses"]["records"], 0);
    assert_eq!(traced.seen().total(), Expected::parse(&traced.done.out).total());
}

#[test]
fn equal_polls_are_few_records_and_all_counted() {
    let traced = trace(Platform::Pocl, &["polls", "user", "300000"]);
    let seen = traced.seen();
    assert_eq!(seen.total()["clGetEventInfo"], 300_000);
    assert!(seen.events < 1000, "{} events", seen.events);
}

#[test]
fn full_mode_folds_nothing() {
    let traced = trace_with(Platform::Pocl, &["-m", "full"], &["polls", "user", "2000"]);
    assert!(traced.seen().events > 4000);
}

#[test]
fn globs_choose_functions() {
    let options = ["--include", "clEnqueue*,clFinish", "--exclude", "*Read*"];
    let calls = trace_with(Platform::Pocl, &options, &["linked", "10"]).seen().total();
    assert_eq!(calls.keys().collect::<Vec<_>>(), ["clEnqueueNDRangeKernel", "clFinish"]);
}

#[test]
fn minimal_mode_keeps_commands_and_leaves_the_rest() {
    let traced = trace_with(Platform::Pocl, &["-m", "minimal"], &["linked", "10"]);
    let seen = traced.seen();
    assert!(!seen.total().contains_key("clSetKernelArg"));
    assert_eq!(seen.total()["clEnqueueNDRangeKernel"], 10);
    assert_eq!(seen.commands.len(), 20);
}
