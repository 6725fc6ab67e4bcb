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
