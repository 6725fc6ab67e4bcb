//! Tracing is transparent to the program.

use hetrace_tests::{Platform, bare, trace};

fn same(platform: Platform, program: &str) {
    let without = bare(platform, &[program]);
    let with = trace(platform, &[program]).done;
    assert_eq!(without.status, with.status);
    for (i, (a, b)) in without.out.lines().zip(with.out.lines()).enumerate() {
        assert_eq!(a, b, "{program} on {platform:?}, line {}", i + 1);
    }
    assert_eq!(without.out, with.out);
}

#[test]
fn queues_events_errors_and_callbacks_look_as_without_us_on_pocl() {
    same(Platform::Pocl, "transparent");
}

#[test]
fn queues_events_errors_and_callbacks_look_as_without_us_on_oclgrind() {
    same(Platform::Oclgrind, "transparent");
}

#[test]
fn queues_events_errors_and_callbacks_look_as_without_us_on_both() {
    same(Platform::Both, "transparent");
}

#[test]
fn errno_and_signal_mask_are_the_programs_own() {
    same(Platform::Pocl, "errno_signal");
}
