//! Signal handlers that leave calls by siglongjmp, and make calls of their own.

use hetrace_tests::torture::check;

#[test]
fn jumps() {
    check("jumps");
}

#[test]
fn jumps_other_stack() {
    check("jumps-other-stack");
}

#[test]
fn handlers_call() {
    check("handlers-call");
}

#[test]
fn handlers_call_and_jump() {
    check("handlers-call-and-jump");
}

#[test]
fn jumps_cuda() {
    check("jumps-cuda");
}

#[test]
fn handlers_call_blocking() {
    check("handlers-call-blocking");
}

#[test]
fn jumps_while_opening() {
    check("jumps-while-opening");
}

#[test]
fn jumps_while_opening_cuda() {
    check("jumps-while-opening-cuda");
}
