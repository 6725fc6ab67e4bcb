//! Limits and system call filters that a program runs under.

use hetrace_tests::torture::check;

#[test]
fn file_size_0() {
    check("file-size-0");
}

#[test]
fn file_size_1_page() {
    check("file-size-1-page");
}

#[test]
fn file_size_100k() {
    check("file-size-100k");
}

#[test]
fn file_size_0_later() {
    check("file-size-0-later");
}

#[test]
fn file_size_100k_later() {
    check("file-size-100k-later");
}

#[test]
fn filter_first_call() {
    check("filter-first-call");
}

#[test]
fn filter_new_threads() {
    check("filter-new-threads");
}

#[test]
fn filter_growth() {
    check("filter-growth");
}

#[test]
fn descriptors() {
    check("descriptors");
}

#[test]
fn addresses_of_the_program() {
    check("addresses-of-the-program");
}
