//! A program that hetrace starts finds everything as its caller would have left it.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, hetrace};

/// Variables that hetrace adds. If a caller has one of them, its value is not compared.
const ADDED: [&str; 10] = [
    "HETRACE_SESSION",
    "HETRACE_MARKS",
    "LD_PRELOAD",
    "HETRACE_ALL_LD_PRELOAD",
    "HETRACE_GATE_LD_PRELOAD",
    "OPENCL_LAYERS",
    "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION64_PATH",
    "INTEL_LIBITTNOTIFY64",
    "OMP_TOOL_LIBRARIES",
];

/// Runs the observer under a caller's conditions, bare or under trace.
fn observed(scratch: &Path, conditions: &[&str], traced: bool) -> (Done, String) {
    let seen = scratch.join(format!("seen-{traced}"));
    let mut command = Command::new(program("caller"));
    command.arg("default").args(conditions).arg(format!("variable:OBSERVED={}", seen.display())).arg("--");
    if traced {
        command.arg(hetrace()).args(["run", "-q", "-o"]).arg(scratch.join("trace")).arg("--");
    }
    let done = run(command.arg(program("observer")).args(["one", "", "two words"]).current_dir(scratch));
    let text = std::fs::read_to_string(&seen).unwrap_or_else(|e| panic!("{seen:?}: {e}: {}", done.err));
    let variable = |line: &&str| {
        let name = line.strip_prefix("variable ").and_then(|v| v.split('=').next());
        !name.is_some_and(|name| ADDED.contains(&name) || name.starts_with("OBSERVED"))
    };
    let lines: Vec<&str> = text.lines().filter(variable).collect();
    (done, lines.join("\n"))
}

#[track_caller]
fn same(conditions: &[&str]) {
    let scratch = tempfile::tempdir().expect("scratch");
    let (bare, expected) = observed(scratch.path(), conditions, false);
    let (traced, seen) = observed(scratch.path(), conditions, true);
    assert_eq!((bare.status, traced.status), (7, 7), "{}", traced.err);
    for (expected, seen) in expected.lines().zip(seen.lines()) {
        assert_eq!(expected, seen, "{conditions:?}");
    }
    assert_eq!(expected, seen, "{conditions:?}");
    assert!(scratch.path().join("trace/hetrace/manifest.json").exists(), "{}", traced.err);
}

#[test]
fn an_ordinary_caller() {
    same(&[]);
}

#[test]
fn ignored_signals_stay_ignored_and_blocked_ones_blocked() {
    same(&[
        "ignore:1",
        "ignore:13",
        "ignore:17",
        "ignore:25",
        "ignore:32",
        "ignore:33",
        "ignore:40",
        "ignore:64",
    ]);
    same(&["block:2", "block:10", "block:17", "block:32", "block:33", "block:50"]);
    let all: Vec<String> = (1..=64).map(|n| format!("ignore:{n}")).collect();
    same(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let all: Vec<String> = (1..=64).map(|n| format!("block:{n}")).collect();
    same(&all.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn closed_descriptors_stay_closed_and_open_ones_open() {
    same(&["close:0"]);
    same(&["close:1"]);
    same(&["close:2"]);
    same(&["close:0", "close:1", "close:2"]);
    same(&["open:3", "open:9", "open:40"]);
}

#[test]
fn the_environment_keeps_its_order_and_duplicates() {
    same(&[
        "variable:Z=1",
        "variable:A=2",
        "variable:Z=3",
        "variable:no equals sign",
        "variable:=",
        "variable:M=",
    ]);
    same(&["no variables", "variable:Z=1", "variable:A=2"]);
}

#[test]
fn limits_are_the_callers() {
    // Soft limits of open files, stack, core, address space, file size and processor time.
    same(&[
        "limit:7:64",
        "limit:3:4194304",
        "limit:4:0",
        "limit:9:8589934592",
        "limit:1:1000000000",
        "limit:0:1000",
    ]);
}

#[test]
fn priority_umask_timers_and_the_rest_are_the_callers() {
    same(&["nice:5", "umask:027", "slack:60000", "batch", "no new privileges", "no randomization"]);
    same(&["umask:0777"]);
    same(&["alarm:1000", "death:10", "adopt"]);
    same(&["session"]);
}

/// As a shell does it: what the kernel takes for no program, and is text, is a script.
#[test]
fn a_script_without_an_interpreter_is_the_shells() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().expect("scratch");
    let make = |name: &str, text: &[u8]| {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
        path
    };
    make("script", b"echo \"$0 $1\"; exit 5\n");
    make("binary", b"\x7fELF no program\n");
    let line = |program: &str| {
        let mut command = Command::new(hetrace());
        command.args(["run", "-q", "--", program, "a b"]).current_dir(scratch.path());
        run(command.env("PATH", format!("/nowhere:{}:/usr/bin:/bin", scratch.path().display())))
    };
    let done = line("./script");
    assert_eq!((done.status, &*done.out), (5, "./script a b\n"), "{}", done.err);
    let done = line("script");
    let expected = format!("{} a b\n", scratch.path().join("script").display());
    assert_eq!((done.status, &*done.out), (5, &*expected), "{}", done.err);
    assert_eq!(line("./binary").status, 126);
    assert_eq!(line("no-such-program").status, 127);
    // What was not started leaves no trace.
    let left = std::fs::read_dir(scratch.path()).expect("scratch").flatten();
    assert_eq!(left.filter(|e| e.file_name().to_string_lossy().starts_with("hetrace-")).count(), 2);
}
