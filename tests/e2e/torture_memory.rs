//! Small and full memory file systems, and groups with a limit.

use hetrace_tests::torture::check;

#[test]
fn memory_256k() {
    check("memory-256k");
}

#[test]
fn memory_1m() {
    check("memory-1m");
}

#[test]
fn memory_64m() {
    check("memory-64m");
}

#[test]
fn memory_of_the_program() {
    check("memory-of-the-program");
}

#[test]
fn memory_fills_up() {
    check("memory-fills-up");
}

#[test]
fn memory_group() {
    check("memory-group");
}
