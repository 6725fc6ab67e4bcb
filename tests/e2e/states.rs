//! States of threads by the operating system's events: why a device waits for a lock, for a CPU, for a sleeper.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hetrace_tests::bed::{Done, program, run};
use hetrace_tests::{has_tracepoints, hetrace};
use serde_json::Value;
use tempfile::TempDir;

/// Records the program `states`; once more where a busy machine made the kernel drop events, as states are unknown there.
fn record(scratch: &TempDir, what: &str, os: &[&str]) -> PathBuf {
    (0..5)
        .map(|n| record_once(scratch, &format!("{what}-{n}"), what, os))
        .find(|trace| is_whole(trace))
        .expect("a trace without a loss")
}

fn is_whole(trace: &Path) -> bool {
    let manifest = std::fs::read(trace.join("hetrace/hetrace/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    manifest["os"]["dropped"] == 0
}

fn record_once(scratch: &TempDir, name: &str, what: &str, os: &[&str]) -> PathBuf {
    let trace = scratch.path().join(name);
    let mut command = Command::new(hetrace());
    // Room for what others do on a busy machine: where events are dropped, states are unknown.
    command.args(["run", "-q", "--os-buffer", "32768", "-o"]).arg(&trace).args(os);
    command.arg("--").arg(program("states")).arg(what);
    let done = run(&mut command);
    assert_eq!(done.status, 0, "{}", done.err);
    trace
}

fn read(command: &str, trace: &Path, more: &[&str]) -> Done {
    run(Command::new(hetrace()).arg(command).arg(trace).args(more))
}

/// The causes of the gaps of the only device, the longest first: kind, text, nanoseconds.
fn causes(trace: &Path) -> Vec<(String, String, u64)> {
    let done = read("why", trace, &["--json"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let report: Value = serde_json::from_str(&done.out).expect("JSON");
    let causes = report["devices"][0]["causes"].as_array().expect("a list").iter();
    let text = |v: &Value| v.as_str().expect("text").to_owned();
    causes.map(|c| (text(&c["kind"]), text(&c["cause"]), c["ns"].as_u64().expect("a number"))).collect()
}

/// The first cause of a kind, and its time.
fn first<'c>(causes: &'c [(String, String, u64)], kind: &str) -> (&'c str, u64) {
    let found = causes.iter().find(|(k, ..)| k == kind);
    let (_, text, ns) = found.unwrap_or_else(|| panic!("no {kind} in {causes:#?}"));
    (text, *ns)
}

#[test]
fn a_lock_is_named_with_who_holds_it_and_what_that_one_does() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = record(&scratch, "lock", &["--os", "tree"]);
    let causes = causes(&trace);
    let (text, ns) = first(&causes, "lock");
    assert!(text.contains("held by holder (") && text.ends_with("which was in clBuildProgram"), "{text}");
    // The builds of three programs are what the device waits for.
    let all: u64 = causes.iter().map(|(.., ns)| ns).sum();
    assert!(ns > all / 2, "{causes:#?}");
    let text = read("why", &trace, &[]).out;
    assert!(text.contains("waiting for lock 0x"), "{text}");
}

#[test]
fn whoever_sends_signals_to_a_waiter_does_not_hold_its_lock() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    for what in ["signalled", "timed"] {
        let trace = record(&scratch, what, &["--os", "tree"]);
        let causes = causes(&trace);
        let locks: Vec<_> = causes.iter().filter(|(kind, ..)| kind == "lock").collect();
        let of = |name: &str| {
            let named = locks.iter().filter(|(_, text, _)| text.contains(&format!("held by {name} (")));
            named.map(|(.., ns)| ns).sum::<u64>()
        };
        let all: u64 = causes.iter().map(|(.., ns)| ns).sum();
        assert!(of("holder") > all / 2, "{what}: {causes:#?}");
        assert_eq!(of("nagger"), 0, "{what}: {causes:#?}");
    }
}

#[test]
fn a_chain_of_locks_is_followed_to_its_end() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = record(&scratch, "chain", &["--os", "tree"]);
    let causes = causes(&trace);
    let (text, ns) = first(&causes, "lock");
    let (held, behind) =
        text.split_once(", which waited for lock 0x").unwrap_or_else(|| panic!("{causes:#?}"));
    assert!(held.contains(" held by middle ("), "{text}");
    assert!(
        behind.contains(" held by holder (") && behind.ends_with(", which was in clBuildProgram"),
        "{text}"
    );
    let all: u64 = causes.iter().map(|(.., ns)| ns).sum();
    assert!(ns > all / 2, "{causes:#?}");
}

#[test]
fn nobody_is_said_to_end_a_sleep() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    // Somebody has the CPU when the timer fires.
    let _hog = Hog::start();
    let trace = record(&scratch, "asleep", &["--os", "tree"]);
    let causes = causes(&trace);
    let slept = causes.iter().find(|(kind, text, _)| kind == "blocked" && text.contains("nanosleep"));
    let (_, text, _) = slept.unwrap_or_else(|| panic!("{causes:#?}"));
    assert!(text.ends_with("clock_nanosleep until a timer woke it"), "{causes:#?}");
}

/// A competitor on CPU 0, as long as this lives.
struct Hog(Child);

impl Hog {
    fn start() -> Self {
        let mut hog = Command::new(program("states"));
        let child = hog.arg("hog").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut hog = Hog(child.expect("a competitor"));
        let mut line = String::new();
        let out = hog.0.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        hog
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn whoever_takes_the_cpu_is_named() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let hog = Hog::start();
    let trace = record(&scratch, "preempted", &["--os", "tree"]);
    drop(hog);
    let causes = causes(&trace);
    let hogged = causes.iter().find(|(kind, text, _)| kind == "preempted" && text.contains("hog ("));
    // Both want the CPU for the 100 ms that the program computes, so each has it about half of the time; others here
    // may take more of it.
    let (_, text, ns) = hogged.unwrap_or_else(|| panic!("{causes:#?}"));
    assert!(*ns > 10_000_000, "{text}: {ns}: {causes:#?}");
    assert!(text.starts_with("waiting for a CPU that hog ("), "{text}");
}

#[test]
fn a_sleeper_is_blocked_in_its_system_call() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = record(&scratch, "asleep", &["--os", "tree"]);
    let causes = causes(&trace);
    let slept = causes.iter().find(|(kind, text, _)| kind == "blocked" && text.contains("nanosleep"));
    let (.., ns) = slept.unwrap_or_else(|| panic!("{causes:#?}"));
    assert!(*ns >= 49_000_000, "{causes:#?}");
}

#[test]
fn a_call_has_its_time_on_the_cpu_and_off_it() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = record(&scratch, "asleep", &["--os", "tree"]);
    let done = read("tally", &trace, &["--json", "--gross"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let tally: Value = serde_json::from_str(&done.out).expect("JSON");
    for row in tally["host"].as_array().expect("rows") {
        let states = row["states"].as_object().unwrap_or_else(|| panic!("{row}"));
        let sum: u64 = states.values().map(|ns| ns.as_u64().expect("a number")).sum();
        assert_eq!(Some(sum), row["total_ns"].as_u64(), "{row}");
    }
    let text = read("tally", &trace, &[]).out;
    assert!(text.contains("Runnable") && text.contains("Blocked"), "{text}");
    // Rows of states and of CPUs.
    let drawing = scratch.path().join("drawing.pftrace");
    let done = read("timeline", &trace, &["-o", &drawing.to_string_lossy()]);
    assert_eq!(done.status, 0, "{}", done.err);
    let bytes = std::fs::read(&drawing).expect("a timeline");
    let has = |text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(has("blocked: clock_nanosleep") && has("CPU 0") && has("running"));
}

#[test]
fn a_kernel_trace_from_elsewhere_is_joined_by_boot_and_clock() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let both = record(&scratch, "asleep", &["--os", "tree"]);
    // As LTTng's: a trace of its own, somewhere else.
    let (own, kernel) = (scratch.path().join("own"), scratch.path().join("elsewhere"));
    std::fs::rename(both.join("hetrace"), &own).expect("moved");
    std::fs::rename(both.join("kernel"), &kernel).expect("moved");
    let without = read("why", &own, &["--json"]);
    assert!(!without.out.contains("nanosleep"), "{}", without.out);
    let place = kernel.to_string_lossy();
    for command in ["why", "tally", "print"] {
        let with = read(command, &own, &["--kernel", &place]);
        assert_eq!(with.status, 0, "{}", with.err);
        let expected = if command == "tally" { "Runnable" } else { "nanosleep" };
        assert!(with.out.contains(expected), "{command}: {}", with.out);
    }
    // Of another boot: its identity is in the metadata.
    let metadata = std::fs::read(kernel.join("metadata")).expect("metadata");
    let at = metadata.windows(6).position(|w| w == b"clock ").expect("a clock");
    let uuid = metadata[at..].windows(6).position(|w| w == b"uuid =").expect("an identity") + at;
    let mut other = metadata.clone();
    let digit = &mut other[uuid + 8];
    *digit = if *digit == b'0' { b'1' } else { b'0' };
    std::fs::write(kernel.join("metadata"), other).expect("written");
    let refused = read("why", &own, &["--kernel", &place]);
    assert_ne!(refused.status, 0);
    assert!(refused.err.contains("another boot"), "{}", refused.err);
    // Without a scheduler's events there are no states: the program's own trace has none.
    let refused = read("why", &own, &["--kernel", &own.to_string_lossy()]);
    assert_ne!(refused.status, 0);
    assert!(refused.err.contains("sched_switch"), "{}", refused.err);
}
