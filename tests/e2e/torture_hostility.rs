//! Kills, and programs that attack the session.

use hetrace_tests::torture::check;

#[test]
fn hostile_program() {
    check("hostile-program");
}

#[test]
fn killed_processes() {
    check("killed-processes");
}

#[test]
fn killed_processes_blocking() {
    check("killed-processes-blocking");
}

#[test]
fn killed_processes_cuda() {
    check("killed-processes-cuda");
}

#[test]
fn killed_launcher() {
    check("killed-launcher");
}
