//! Files that the launcher may not open or can't map are counted.

use hetrace_tests::torture::check;

#[test]
fn umask_0777() {
    check("umask-0777");
}

#[test]
fn umask_0400() {
    check("umask-0400");
}

#[test]
fn umask_set_later() {
    check("umask-set-later");
}

#[test]
fn launcher_short_of_addresses() {
    check("launcher-short-of-addresses");
}
