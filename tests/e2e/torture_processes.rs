//! Processes taken for dead, and children that share memory: nothing is lost silently.

use hetrace_tests::torture::check;

#[test]
fn main_thread_ends() {
    check("main-thread-ends");
}

#[test]
fn main_thread_ends_blocking() {
    check("main-thread-ends-blocking");
}

#[test]
fn main_thread_ends_cuda() {
    check("main-thread-ends-cuda");
}

#[test]
fn threads_beyond_descriptors() {
    check("threads-beyond-descriptors");
}

#[test]
fn pid_namespace() {
    check("pid-namespace");
}

#[test]
fn two_pid_namespaces() {
    check("two-pid-namespaces");
}

#[test]
fn shared_thread_storage() {
    check("shared-thread-storage");
}

#[test]
fn vfork_children() {
    check("vfork-children");
}

#[test]
fn fork_storm() {
    check("fork-storm");
}

#[test]
fn fork_storm_cuda() {
    check("fork-storm-cuda");
}

#[test]
fn child_with_neighbour() {
    check("child-with-neighbour");
}

#[test]
fn child_with_cancelled_thread() {
    check("child-with-cancelled-thread");
}

#[test]
fn handler_forks() {
    check("handler-forks");
}
