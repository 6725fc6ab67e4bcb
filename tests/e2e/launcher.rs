//! The launcher's manners.

use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::{Platform, hetrace, trace};

#[test]
fn exit_statuses_are_a_shells() {
    let folder = tempfile::tempdir().expect("scratch");
    let status = |program: &str| {
        run(Command::new(hetrace()).current_dir(folder.path()).args(["run", "--", program])).status
    };
    assert_eq!(status("/does/not/exist"), 127);
    assert_eq!(status("/etc/passwd"), 126);
    assert_eq!(status("true"), 0);
    assert_eq!(status("false"), 1);
}

#[test]
fn a_trace_is_never_overwritten() {
    let folder = tempfile::tempdir().expect("scratch");
    let done = run(Command::new(hetrace()).arg("run").arg("-o").arg(folder.path()).args(["--", "true"]));
    assert_eq!(done.status, 125);
    assert!(done.err.contains("exists already"), "{}", done.err);
}

#[test]
fn names_of_traces_count_up() {
    let folder = tempfile::tempdir().expect("scratch");
    for _ in 0..2 {
        run(Command::new(hetrace()).current_dir(folder.path()).arg("true"));
    }
    assert!(folder.path().join("hetrace-true-1/metadata").exists());
    assert!(folder.path().join("hetrace-true-2/metadata").exists());
}

#[test]
fn a_static_program_runs_untraced_and_that_is_said() {
    let traced = trace(Platform::Pocl, &["static"]);
    assert_eq!(traced.done.status, 0);
    assert!(traced.done.err.contains("statically linked"), "{}", traced.done.err);
}

#[test]
fn a_setuid_program_is_named_as_untraceable() {
    let me = run(Command::new("id").arg("-u")).out;
    let program = ["/usr/bin/su", "/bin/su"].into_iter().find(|p| std::path::Path::new(p).exists());
    let Some(program) = program else { panic!("no su on this machine") };
    let folder = tempfile::tempdir().expect("scratch");
    let done = run(Command::new(hetrace()).arg("run").arg("-o").arg(folder.path().join("t")).args([
        "--",
        program,
        "--version",
    ]));
    assert_eq!(done.status, 0);
    // For root a setuid-root program changes nothing, so nothing stands in the way.
    assert_eq!(done.err.contains("setuid"), me.trim() != "0", "{}", done.err);
}

#[test]
fn stdout_and_stderr_are_the_programs() {
    let folder = tempfile::tempdir().expect("scratch");
    let done = run(Command::new(hetrace()).arg("run").arg("-o").arg(folder.path().join("t")).args([
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2",
    ]));
    assert_eq!(done.out, "out\n");
    assert!(done.err.starts_with("err\n"), "{}", done.err);
}

#[test]
fn nothing_is_left_in_shared_memory() {
    let count = || {
        let entries = std::fs::read_dir("/dev/shm").expect("shared memory").flatten();
        entries.filter(|e| e.file_name().to_string_lossy().starts_with("hetrace-")).count()
    };
    trace(Platform::Pocl, &["linked", "5"]);
    // Other tests run at the same time: theirs are gone soon, too.
    for _ in 0..200 {
        if count() == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("session folders are left over");
}
