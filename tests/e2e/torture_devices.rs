//! Processes that end at once: a queue stays one queue.

use hetrace_tests::torture::check;

#[test]
fn short_process() {
    check("short-process");
}

#[test]
fn short_processes() {
    check("short-processes");
}

#[test]
fn short_processes_end_quickly() {
    check("short-processes-end-quickly");
}

#[test]
fn last_rings_of_short_processes() {
    check("last-rings-of-short-processes");
}
