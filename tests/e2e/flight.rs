//! `hetrace run --flight`: what was recorded last is kept, and written as a whole trace when that is asked for.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, Seen, hetrace};

const LAUNCH: &str = "clEnqueueNDRangeKernel";

/// A flight recording of a program that does what its script says.
struct Flight {
    scratch: tempfile::TempDir,
    child: Option<Child>,
}

impl Flight {
    fn start(options: &[&str], script: &[&str]) -> Self {
        Self::start_in("trace", options, script)
    }

    fn start_in(output: &str, options: &[&str], script: &[&str]) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mut line = Command::new(hetrace());
        line.args(["run", "-o", output]).args(options).arg("--").arg(program("windows")).args(script);
        line.current_dir(scratch.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = line.envs(Platform::Pocl.environment(scratch.path())).spawn().expect("hetrace");
        Flight { scratch, child: Some(child) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn until(&self, name: &str) {
        wait_for(name, || self.path(name).exists());
    }

    fn go(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file");
    }

    fn id(&self) -> String {
        self.child.as_ref().expect("a child").id().to_string()
    }

    fn signal(&self, signal: &str) {
        let done = run(Command::new("kill").args([signal, &self.id()]));
        assert_eq!(done.status, 0, "{}", done.err);
    }

    fn snapshot(&self) -> Done {
        run(Command::new(hetrace()).args(["snapshot", "--wait", "300"]).arg(self.id()))
    }

    /// Waits for the end. Returns the status, if it was no signal, and what hetrace wrote.
    fn end(&mut self) -> (Option<i32>, String) {
        let done = self.child.take().expect("a child").wait_with_output().expect("an end");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    fn launches(&self, name: &str) -> u64 {
        launches(&self.path(name))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The program does not wait for ever for a test that failed.
            ["b", "d"].map(|name| std::fs::write(self.path(name), "")).into_iter().for_each(drop);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait_for(what: &str, there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(300), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn launches(trace: &Path) -> u64 {
    Seen::read(trace).total().get(LAUNCH).copied().unwrap_or(0)
}

fn command(name: &str, trace: &Path) -> Done {
    run(Command::new(hetrace()).arg(name).arg(trace))
}

fn manifest(trace: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(trace.join("hetrace/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

/// Every reader takes it as a whole trace.
fn is_sound(trace: &Path) {
    for name in ["check", "tally", "print", "why", "lint"] {
        let done = command(name, trace);
        assert_eq!(done.status, 0, "{name}: {}{}", done.out, done.err);
    }
    let checked = command("check", trace);
    assert!(checked.out.contains("complete and unchanged"), "{}{}", checked.out, checked.err);
    let line = trace.with_extension("json");
    let timeline = run(Command::new(hetrace()).arg("timeline").arg(trace).arg("-o").arg(&line));
    assert_eq!(timeline.status, 0, "{}", timeline.err);
    let mut names = std::fs::read_dir(trace).expect("a trace").flatten().map(|entry| entry.file_name());
    if names.any(|name| name.to_string_lossy().ends_with(".zst")) {
        return; // Others read these unpacked only.
    }
    let read = run(Command::new("babeltrace2").arg(trace));
    assert!(read.status == 0 && read.err.is_empty(), "babeltrace2: {}", read.err);
}

/// What is there besides: nothing half-done, no folder of work.
fn nothing_else(flight: &Flight, snapshots: &[&str]) {
    let mut found: Vec<String> = std::fs::read_dir(flight.scratch.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("trace") && !name.ends_with(".json"))
        .collect();
    found.sort();
    assert_eq!(found, snapshots);
}

#[test]
fn snapshots_have_the_last_seconds_and_what_they_need_of_the_time_before() {
    let script = ["launch:30", "touch:a", "wait:b", "launch:12", "touch:c", "block:d", "launch:5"];
    let mut flight = Flight::start(&["--flight", "2s", "--snapshot-on", "USR1"], &script);
    flight.until("a");
    // What would ask again and again is refused, and asks for nothing.
    let top = run(Command::new(hetrace()).args(["top", "--once"]).arg(flight.id()));
    assert!(top.status != 0 && top.err.contains("a flight recording"), "{}", top.err);
    let done = flight.snapshot();
    assert_eq!(done.status, 0, "{}", done.err);
    let first = flight.path("trace").canonicalize().expect("a snapshot");
    assert!(done.err.contains(&format!("{}: all ", first.display())), "{}", done.err);
    assert!(done.err.contains(&format!("hetrace timeline {}", first.display())), "{}", done.err);
    assert_eq!(launches(&first), 30);
    is_sound(&first);
    assert_eq!(manifest(&first)["flight"]["since_ns"], serde_json::Value::Null);

    // The window passes. What was launched before is not in the next one.
    std::thread::sleep(Duration::from_secs(4));
    flight.go("b");
    flight.until("c");
    flight.signal("-USR1");
    wait_for("trace-2", || flight.path("trace-2/metadata").exists());
    let second = flight.path("trace-2");
    assert_eq!(launches(&second), 12);
    is_sound(&second);
    let said = &manifest(&second)["flight"];
    assert!(said["since_ns"].is_u64() && said["short"].is_null() && said["reason"] == "signal", "{said}");
    let queues = command("print", &second).out;
    assert!(queues.contains("queue 0x") && queues.contains("made on"), "{queues}");
    let why = command("why", &second);
    assert!(why.out.contains("addone"), "{}", why.out);
    for report in [&why, &command("tally", &second)] {
        assert!(
            report.out.contains("Snapshot of a flight recording (--flight 2s): the last "),
            "{}",
            report.out
        );
    }

    // A call that began before the window, and still waits, is in it.
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(flight.snapshot().status, 0);
    let third = flight.path("trace-3");
    is_sound(&third);
    assert_eq!(launches(&third), 0);
    let print = command("print", &third).out;
    assert!(print.contains("clWaitForEvents"), "{print}");
    flight.go("d");
    let (status, err) = flight.end();
    assert_eq!(status, Some(0), "{err}");
    for words in
        ["snapshot (asked) trace: all ", "snapshot (signal) trace-2: the last ", "next: hetrace timeline"]
    {
        assert!(err.contains(words), "{words}: {err}");
    }
    nothing_else(&flight, &["trace", "trace-2", "trace-3"]);
}

#[test]
fn what_memory_does_not_hold_is_dropped_and_said() {
    let options = ["--flight", "600s", "--flight-memory", "1M", "--no-device"];
    let mut flight = Flight::start(&options, &["launch:60000", "touch:a", "wait:b"]);
    flight.until("a");
    let done = flight.snapshot();
    assert!(done.status == 0 && done.err.contains("not 600.00 s: memory for 1048576 bytes"), "{}", done.err);
    is_sound(&flight.path("trace"));
    let there = flight.launches("trace");
    assert!(there > 100 && there < 60000, "{there}");
    assert_eq!(manifest(&flight.path("trace"))["flight"]["short"], true);
    flight.go("b");
    let (status, err) = flight.end();
    assert_eq!(status, Some(0), "{err}");
}

#[test]
fn the_end_is_written_if_the_program_failed_or_that_was_asked_for() {
    for (options, script, status, reason) in [
        (&[][..], &["launch:7", "crash"][..], None, Some("crash")),
        (&[], &["launch:7", "kill"], None, Some("crash")),
        (&[], &["launch:7", "fail"], Some(3), Some("failure")),
        (&["--flight-at-end"], &["launch:7"], Some(0), Some("end")),
        (&[], &["launch:7"], Some(0), None),
    ] {
        let mut flight = Flight::start(&[&["--flight", "60s"], options].concat(), script);
        let (ended, err) = flight.end();
        assert_eq!(ended, status, "{err}");
        let Some(reason) = reason else {
            assert!(err.contains("no snapshot was written; ask for one by `hetrace snapshot`"), "{err}");
            nothing_else(&flight, &[]);
            continue;
        };
        assert!(err.contains(&format!("snapshot ({reason}) trace: all ")), "{err}");
        assert_eq!(flight.launches("trace"), 7, "{reason}");
        is_sound(&flight.path("trace"));
        nothing_else(&flight, &["trace"]);
    }
}

#[test]
fn threads_and_processes_are_all_there() {
    let script = ["children:3", "threads:4", "launch:25"];
    for compress in [&[][..], &["--compress"]] {
        let mut flight =
            Flight::start(&[&["--flight", "600s", "--flight-at-end"], compress].concat(), &script);
        let (status, err) = flight.end();
        assert_eq!(status, Some(0), "{err}");
        assert_eq!(flight.launches("trace"), 3 * 4 * 25);
        is_sound(&flight.path("trace"));
    }
}

#[test]
fn snapshots_while_all_threads_record_lose_nothing_of_their_time() {
    let mut flight = Flight::start(
        &["--flight", "600s", "--flight-at-end"],
        &["launch:1", "touch:a", "threads:2", "spin:b"],
    );
    flight.until("a");
    for name in ["trace", "trace-2", "trace-3"] {
        let done = flight.snapshot();
        assert_eq!(done.status, 0, "{}", done.err);
        is_sound(&flight.path(name));
    }
    flight.go("b");
    let (status, err) = flight.end();
    assert_eq!(status, Some(0), "{err}");
    is_sound(&flight.path("trace-4"));
    let all = ["trace", "trace-2", "trace-3", "trace-4"].map(|name| flight.launches(name));
    assert!(all.is_sorted(), "{all:?}");
}

#[test]
fn a_killed_launcher_leaves_what_the_rings_hold() {
    let script = ["launch:9", "touch:a", "wait:b", "launch:3", "touch:c"];
    let mut flight = Flight::start(&["--flight", "60s"], &script);
    flight.until("a");
    flight.signal("-STOP");
    flight.signal("-KILL");
    // The program ends by itself, and with it what reads its output.
    flight.go("b");
    let (status, _) = flight.end();
    assert_eq!(status, None);
    let work = flight.path("trace.flight");
    let done = run(Command::new(hetrace()).arg("recover").arg(&work));
    assert_eq!(done.status, 0, "{}", done.err);
    assert_eq!(command("print", &work).status, 0);
}

#[test]
fn a_program_that_asks_all_the_time_gets_one_a_second_at_most() {
    let options = ["--flight", "60s", "--snapshot-on", "USR1"];
    let mut flight = Flight::start(&options, &["launch:1", "touch:a", "wait:b"]);
    flight.until("a");
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(flight.snapshot().status, 0);
    }
    assert!(begun.elapsed() >= Duration::from_secs(2));
    // What cannot be begun yet is not forgotten when the program ends.
    flight.signal("-USR1");
    flight.go("b");
    let (status, err) = flight.end();
    assert!(status == Some(0) && err.contains("snapshot (signal) trace-4"), "{err}");
}

#[test]
fn the_program_asks_by_a_call_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a root");
    let built = root.join("target/test-programs/marks");
    let source = root.join("tests/programs/marks");
    let out = format!("OUT={}", built.display());
    let made = run(Command::new("make").args(["-s", "-C"]).arg(source).arg(out));
    assert_eq!(made.status, 0, "{}", made.err);
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let mut line = Command::new(hetrace());
    line.args(["run", "--flight", "60s", "-o", "trace", "--"]).arg(built.join("c99"));
    let done = run(line.current_dir(scratch.path()));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.err.contains("snapshot (asked) trace: all "), "{}", done.err);
    is_sound(&scratch.path().join("trace"));
}

/// The parts of a snapshot with events of the operating system: that of the program is sound, and so are both together.
fn with_kernel(snapshot: &Path) -> (PathBuf, String) {
    let checked = command("check", snapshot);
    assert!(
        checked.status == 0 && checked.out.contains("complete and unchanged"),
        "{}{}",
        checked.out,
        checked.err
    );
    let print = command("print", snapshot);
    assert_eq!(print.status, 0, "{}", print.err);
    for name in ["tally", "why"] {
        let done = command(name, snapshot);
        assert_eq!(done.status, 0, "{name}: {}", done.err);
    }
    let both = run(Command::new("babeltrace2").arg(snapshot));
    assert!(both.status == 0 && both.err.is_empty(), "babeltrace2: {}", both.err);
    (snapshot.join("hetrace"), print.out)
}

#[test]
fn the_operating_system_and_telemetry_are_in_snapshots() {
    let script = ["launch:200", "touch:a", "wait:b", "launch:300", "touch:c", "wait:d"];
    let options = ["--flight", "2s", "--os", "auto", "--sample=10ms", "--flight-at-end"];
    let mut flight = Flight::start(&options, &script);
    flight.until("a");
    assert_eq!(flight.snapshot().status, 0);
    let (program, print) = with_kernel(&flight.path("trace"));
    assert_eq!(launches(&program), 200);
    let os = manifest(&program)["os"].clone();
    assert!(os["events"].as_u64().expect("a number") > 0, "{os:#}");
    assert!(print.contains("kernel "), "{print}");
    assert!(print.contains("telemetry:"), "{print}");
    // What is out of the window goes, the state dump stays.
    std::thread::sleep(Duration::from_millis(4500));
    flight.go("b");
    flight.until("c");
    assert_eq!(flight.snapshot().status, 0);
    let (program, print) = with_kernel(&flight.path("trace-2"));
    assert_eq!(launches(&program), 300);
    assert!(print.contains("telemetry:"), "{print}");
    let manifest = manifest(&program);
    let os = &manifest["os"];
    assert!(os["since_ns"].as_u64().is_some(), "{os:#}");
    if os["way"] == "tracepoints" {
        assert!(print.contains("sched_switch"), "{print}");
        assert!(print.contains("lttng_statedump_process_state"), "{print}");
        // The last thing that is asked for is there: the program waits for a file.
        assert!(print.contains("sched_waking") || print.contains("syscall"), "{print}");
    }
    flight.go("d");
    let (status, err) = flight.end();
    assert_eq!(status, Some(0), "{err}");
    with_kernel(&flight.path("trace-3"));
    nothing_else(&flight, &["trace", "trace-2", "trace-3"]);
}

/// A small file system in memory.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(size: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let size = format!("size={size}");
        let done = run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()));
        assert_eq!(done.status, 0, "this test needs root: {}", done.err);
        Small(folder)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.0.path()));
    }
}

#[test]
fn a_full_disk_costs_the_snapshot_and_nothing_else() {
    let small = Small::mount("1M");
    let output = small.0.path().join("trace");
    let mut flight = Flight::start_in(
        output.to_str().expect("a path"),
        &["--flight", "60s"],
        &["launch:20000", "touch:a", "wait:b"],
    );
    flight.until("a");
    let done = flight.snapshot();
    assert_eq!(done.status, 125, "{}", done.err);
    assert!(
        done.err.contains("no snapshot was written") && done.err.contains("No space left"),
        "{}",
        done.err
    );
    // Room again, and the next one is whole.
    let done = run(Command::new("mount").args(["-o", "remount,size=256M"]).arg(small.0.path()));
    assert_eq!(done.status, 0, "{}", done.err);
    let done = flight.snapshot();
    assert_eq!(done.status, 0, "{}", done.err);
    assert_eq!(launches(&output), 20000);
    flight.go("b");
    let (status, err) = flight.end();
    assert!(status == Some(0) && err.contains("a snapshot was not written"), "{err}");
    is_sound(&output);
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (options, words) in [
        (&["--flight", "1ms"][..], "at least 1s"),
        (&["--flight", "30s", "--live"], "cannot be used with"),
        (&["--snapshot-on", "USR1"], "--flight"),
    ] {
        let done = run(Command::new(hetrace()).arg("run").args(options).arg("--").arg("true"));
        assert!(done.status != 0 && done.err.contains(words), "{}", done.err);
    }
}
