//! Traces that are not finished: what is said of them, and what can still be had.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, hetrace};

/// Runs a script where `/dev/shm` is a memory file system of its own, so that no other launcher
/// of the tests clears away there.
fn with_own_memory(scratch: &Path, size: &str, script: &str) -> Done {
    let mut command = Command::new("unshare");
    let mount = format!("mount -t tmpfs -o mode=1777,size={size} tmpfs /dev/shm; {script}");
    command.args(["-rm", "sh", "-c", &mount]).current_dir(scratch);
    run(command.env("HETRACE", hetrace()).env("POLLS", program("polls")))
}

/// A launcher that is stopped takes nothing; killed then, it leaves all calls in the rings.
const KILLED: &str = "\"$HETRACE\" run -q -m full -o t -- \
    sh -c 'kill -STOP $PPID; \"$POLLS\" user 2000 >/dev/null; kill -KILL $PPID; touch ended' 2>/dev/null; \
    until test -e ended; do sleep 0.05; done; ls /dev/shm; ";

fn polls(tally: &str) -> &str {
    let line = tally.lines().find(|line| line.contains("clGetEventInfo"));
    line.unwrap_or_else(|| panic!("no polls:\n{tally}"))
}

#[test]
fn what_a_killed_launcher_left_is_recovered() {
    let scratch = tempfile::tempdir().expect("scratch");
    let script = format!(
        "{KILLED} \"$HETRACE\" tally t >before; \"$HETRACE\" recover; \"$HETRACE\" recover t; \
         \"$HETRACE\" tally t --csv >after; ls /dev/shm"
    );
    let done = with_own_memory(scratch.path(), "64m", &script);
    assert_eq!((done.status, &*done.out), (0, "hetrace-0\n"), "{}", done.err);
    assert!(done.err.contains("`hetrace recover` adds the events left"), "{}", done.err);
    assert!(done.err.contains("/t: recovered 40"), "{}", done.err);
    assert!(done.err.contains("t: nothing to recover: the trace is finished"), "{}", done.err);
    let read = |name: &str| std::fs::read_to_string(scratch.path().join(name)).expect("a tally");
    assert!(!read("before").contains("clGetEventInfo"), "{}", read("before"));
    assert!(polls(&read("after")).contains(",2000,"), "{}", read("after"));
    let manifest =
        std::fs::read_to_string(scratch.path().join("t/hetrace/manifest.json")).expect("a manifest");
    assert!(manifest.contains("left in shared memory were recovered"), "{manifest}");
}

/// Its rings can't be read here: it must not be finished as if there were nothing in them.
#[test]
fn what_another_build_recorded_is_left_to_that_one() {
    let scratch = tempfile::tempdir().expect("scratch");
    // The version is at byte 8 of the control file.
    let put = "dd of=$(echo /dev/shm/hetrace-0/*/control) bs=1 seek=8 count=1 conv=notrunc 2>/dev/null";
    let script = format!(
        "{KILLED} dd if=$(echo /dev/shm/hetrace-0/*/control) of=own bs=1 skip=8 count=1 2>/dev/null; \
         printf '\\377' | {put}; \
         \"$HETRACE\" recover; \"$HETRACE\" run -q -o u -- true; \"$HETRACE\" recover t; echo $?; {put} <own; \
         \"$HETRACE\" recover t; \"$HETRACE\" tally t --csv >after"
    );
    let done = with_own_memory(scratch.path(), "64m", &script);
    assert_eq!(done.out, "hetrace-0\n125\n", "{}", done.err);
    assert!(
        done.err.contains("another build of hetrace recorded it (shared memory version 255"),
        "{}",
        done.err
    );
    assert_eq!(done.err.matches("/t: recovered 40").count(), 1, "{}", done.err);
    let after = std::fs::read_to_string(scratch.path().join("after")).expect("a tally");
    assert!(polls(&after).contains(",2000,"), "{after}");
}

#[test]
fn the_next_run_recovers_too() {
    let scratch = tempfile::tempdir().expect("scratch");
    let script = format!(
        "{KILLED} \"$HETRACE\" run -q -o u -- sh -c 'exit 7'; echo $?; \"$HETRACE\" tally t --csv >after; ls /dev/shm"
    );
    let done = with_own_memory(scratch.path(), "64m", &script);
    assert_eq!(done.out, "hetrace-0\n7\n", "{}", done.err);
    assert!(done.err.contains("/t: recovered 40"), "{}", done.err);
    let after = std::fs::read_to_string(scratch.path().join("after")).expect("a tally");
    assert!(polls(&after).contains(",2000,"), "{after}");
}

#[test]
fn a_trace_without_memory_is_removed_with_its_session() {
    let scratch = tempfile::tempdir().expect("scratch");
    let script = format!("{KILLED} rm -r t; \"$HETRACE\" recover; ls /dev/shm");
    let done = with_own_memory(scratch.path(), "64m", &script);
    assert_eq!((done.status, &*done.out), (0, "hetrace-0\n"), "{}", done.err);
    assert!(done.err.contains("nothing to recover"), "{}", done.err);
}

#[test]
fn a_trace_that_is_being_recorded_is_called_that() {
    let scratch = tempfile::tempdir().expect("scratch");
    let script = "\"$HETRACE\" run -q -o t -- sh -c \
        'until test -s t/metadata; do sleep 0.01; done; \
         \"$HETRACE\" tally t >during 2>said; \"$HETRACE\" recover t 2>>said; echo $?; \"$HETRACE\" recover'";
    let done = with_own_memory(scratch.path(), "64m", script);
    assert_eq!(done.out, "125\n", "{}", done.err);
    let said = std::fs::read_to_string(scratch.path().join("said")).expect("what was said");
    assert!(said.contains("this trace is still being recorded"), "{said}");
    assert!(said.contains("t: still being recorded"), "{said}");
    assert!(done.err.contains("nothing to recover"), "{}", done.err);
}

#[test]
fn calls_that_found_no_memory_are_said_to_be_dropped() {
    let scratch = tempfile::tempdir().expect("scratch");
    // The program may make no file, of shared memory neither.
    let script = "\"$HETRACE\" run -o t -- sh -c 'ulimit -f 0; exec \"$POLLS\" user 1000' >/dev/null";
    let done = with_own_memory(scratch.path(), "1m", script);
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.err.contains("calls were dropped"), "{}", done.err);
    assert!(!done.err.contains("made no call") && !done.err.contains("threads could get"), "{}", done.err);
}
