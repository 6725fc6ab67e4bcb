//! `hetrace run --flight --trigger`: snapshots that nobody has to ask for; and `hetrace postmortem`, which shows how a
//! trace ends.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, fake, hetrace};
use serde_json::Value;

/// A flight recording with triggers, of a program that does what its script says.
struct Flight {
    scratch: tempfile::TempDir,
    child: Option<Child>,
}

impl Flight {
    fn start(options: &[&str], script: &[&str]) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mut line = Command::new(hetrace());
        line.args(["run", "-o", "trace"]).args(options).arg("--").arg(program("windows")).args(script);
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

    /// Waits for the end. Returns the status, if it was no signal, and what hetrace wrote.
    fn end(&mut self) -> (Option<i32>, String) {
        let done = self.child.take().expect("a child").wait_with_output().expect("an end");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// How many snapshots there are.
    fn snapshots(&self) -> usize {
        let names = std::fs::read_dir(self.scratch.path()).expect("a folder").flatten();
        names.filter(|name| name.path().join("metadata").exists()).count()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The program does not wait for ever for a test that failed.
            self.go("b");
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

fn command(arguments: &[&str], trace: &Path) -> Done {
    run(Command::new(hetrace()).args(arguments).arg(trace))
}

/// What fired, by the manifest.
fn fired(trace: &Path) -> (String, Vec<Value>) {
    let text = std::fs::read_to_string(trace.join("hetrace/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    let flight = &manifest["flight"];
    let reason = flight["reason"].as_str().expect("a reason").to_owned();
    (reason, flight["fired"].as_array().cloned().unwrap_or_default())
}

/// Runs a program until a trigger has fired, and looks at the snapshot: every reader says why it was taken.
fn fires(trigger: &str, options: &[&str], script: &[&str]) -> Value {
    let script = [script, &["touch:a", "wait:b"]].concat();
    let options = [&["--flight", "60s", "--trigger", trigger], options].concat();
    let mut flight = Flight::start(&options, &script);
    let trace = flight.path("trace");
    flight.until("trace/metadata");
    let (reason, all) = fired(&trace);
    assert_eq!((reason.as_str(), all.len()), ("trigger", 1), "{trigger}");
    for name in ["tally", "check", "print", "postmortem"] {
        let done = command(&[name], &trace);
        assert_eq!(done.status, 0, "{name}: {}", done.err);
        assert!(done.out.contains(&format!("trigger `{trigger}`")), "{name}: {}", done.out);
    }
    flight.go("b");
    let (status, err) = flight.end();
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("snapshot (trigger) trace: ") && err.contains("next: hetrace postmortem"), "{err}");
    all[0].clone()
}

#[test]
fn an_argument_fires() {
    let fired = fires("clSetKernelArg.arg_size == 8", &[], &["launch:3"]);
    assert_eq!(fired["function"], "clSetKernelArg");
    assert_eq!(
        (fired["api"].as_str(), fired["value"].as_str()),
        (Some("opencl"), Some("clSetKernelArg.arg_size = 8"))
    );
    assert!(fired["pid"].is_u64() && fired["tid"].is_u64() && fired["time_ns"].is_u64(), "{fired}");
}

#[test]
fn a_kernel_on_a_device_fires() {
    let text = "kernel.duration > 0ns && kernel.name == \"addone*\"";
    let fired = fires(text, &[], &["launch:9"]);
    assert_eq!(fired["function"], "addone", "{fired}");
    assert!(fired["pid"].is_u64() && fired["tid"].is_u64() && fired["time_ns"].is_u64(), "{fired}");
    let value = fired["value"].as_str().expect("text");
    assert!(value.starts_with("kernel.duration = ") && value.contains("kernel.name = \"addone"), "{value}");
    // What a command does not have fires nothing.
    let options = [
        "--flight",
        "60s",
        "--flight-at-end",
        "--trigger",
        "kernel.duration > 9min",
        "--trigger",
        "copy.size > 1TiB",
    ];
    let (status, err) = Flight::start(&options, &["launch:9"]).end();
    assert!(status == Some(0) && err.contains("`kernel.duration > 9min`: never true"), "{err}");
    assert!(err.contains("`copy.size > 1TiB`: never true"), "{err}");
}

#[test]
fn a_result_fires() {
    let fired = fires("result == CL_INVALID_WORK_DIMENSION", &[], &["launch:30", "wrong:1", "launch:3"]);
    assert_eq!(fired["function"], "clEnqueueNDRangeKernel");
    assert_eq!(fired["value"], "result = CL_INVALID_WORK_DIMENSION (-53)");
}

#[test]
fn a_failure_fires_for_all_functions() {
    let fired = fires("cl*.failed && name != \"clGet*\"", &[], &["wrong:5"]);
    assert_eq!(fired["value"], "cl*.failed = CL_INVALID_WORK_DIMENSION (-53)");
}

#[test]
fn a_duration_fires() {
    // Nothing is built as fast as that, and nothing faster than in no time.
    let never = ["--trigger", "clBuildProgram.duration < 1ns"];
    let fired = fires("clBuildProgram.duration > 10us", &never, &["launch:3"]);
    assert_eq!(fired["function"], "clBuildProgram");
    let value = fired["value"].as_str().unwrap_or_default();
    assert!(value.starts_with("clBuildProgram.duration = ") && value.ends_with('s'), "{fired}");
}

#[test]
fn a_rate_fires() {
    let fired =
        fires("clEnqueueNDRangeKernel.rate > 5/s && !(clBuildProgram.rate > 1000/s)", &[], &["launch:600"]);
    assert_eq!(fired["function"], "clEnqueueNDRangeKernel");
}

#[test]
fn a_hang_fires() {
    let fired = fires("clWaitForEvents.open > 1500ms", &[], &["launch:3", "hang"]);
    assert_eq!(fired["function"], "clWaitForEvents");
    assert!(fired["tid"].is_u64() && fired["tid"] != fired["pid"], "{fired}");
}

#[test]
fn silence_fires() {
    let fired = fires("idle > 2s", &[], &["launch:3"]);
    assert!(fired["function"].is_null(), "{fired}");
    assert!(fired["value"].as_str().is_some_and(|value| value.starts_with("idle = ")), "{fired}");
}

#[test]
fn telemetry_fires() {
    let fired = fires("host.resident > 64KiB", &["--sample=50ms"], &["launch:3"]);
    assert!(fired["value"].as_str().is_some_and(|value| value.starts_with("host.resident = ")), "{fired}");
}

#[test]
fn a_crash_is_a_trigger_too() {
    for (trigger, script, reason, fires) in [
        ("crash", "crash", "crash", true),
        ("crash && clWaitForEvents.open > 0ns", "kill", "crash", true),
        ("exit == 3", "fail", "failure", true),
        ("crash", "fail", "failure", false),
    ] {
        let mut flight =
            Flight::start(&["--flight", "60s", "--trigger", trigger], &["launch:3", "hang", script]);
        let (_, err) = flight.end();
        let (found, all) = fired(&flight.path("trace"));
        assert_eq!((found.as_str(), all.len()), (reason, usize::from(fires)), "{trigger}: {err}");
        assert_eq!(flight.snapshots(), 1);
    }
    let mut flight = Flight::start(&["--flight", "60s", "--trigger", "exit == 0"], &["launch:3"]);
    let (status, err) = flight.end();
    assert!(status == Some(0) && err.contains("snapshot (trigger) trace"), "{err}");
}

#[test]
fn thousands_of_firings_are_no_flood() {
    let trigger = "clEnqueueNDRangeKernel.duration >= 0ns";
    let options =
        ["--flight", "4s", "--trigger", trigger, "--trigger-limit", "2", "--trigger", "clFlush.failed"];
    let mut flight = Flight::start(&options, &["spin:b"]);
    flight.until("trace-2/metadata");
    // A third would be due by now.
    std::thread::sleep(Duration::from_secs(5));
    flight.go("b");
    let (status, err) = flight.end();
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(flight.snapshots(), 2, "{err}");
    assert!(err.contains("2 snapshots (no more: --trigger-limit)"), "{err}");
    assert!(err.contains("trigger `clFlush.failed`: never true"), "{err}");
    let (_, all) = fired(&flight.path("trace-2"));
    assert!(all[0]["again"].as_u64().is_some_and(|again| again > 10), "{all:?}");
}

#[test]
fn a_killed_launcher_leaves_its_program_alone() {
    let options = ["--flight", "60s", "--trigger", "clWaitForEvents.open > 1s"];
    let script = ["launch:9", "hang", "touch:a", "wait:b", "launch:3", "touch:c"];
    let mut flight = Flight::start(&options, &script);
    flight.until("trace/metadata");
    let id = flight.child.as_ref().expect("a child").id().to_string();
    run(Command::new("kill").args(["-KILL", &id]));
    flight.go("b");
    let (status, _) = flight.end();
    assert_eq!(status, None);
    wait_for("the rest", || flight.path("c").exists());
    let trace = flight.path("trace");
    assert_eq!(command(&["check"], &trace).status, 0);
    let post = command(&["postmortem"], &trace);
    assert!(post.out.contains("clWaitForEvents(num_events=1"), "{}", post.out);
    // What the rings hold still is a trace, too. Each run recovers what others left, so that of another test may be at it
    // right now; what is lost stays lost.
    let work = flight.path("trace.flight");
    wait_for("a recovered trace", || command(&["recover"], &work).status == 0);
    assert_eq!(command(&["postmortem"], &work).status, 0);
}

#[test]
fn cuda_calls_fire() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "--flight", "60s", "--device-times", "events", "-o", "trace"]);
    line.args(["--trigger", "cuMemAlloc_v2.bytesize >= 64 B && !failed", "--"]);
    line.arg(fake::program("work")).arg("streams").current_dir(scratch.path());
    line.env("LD_LIBRARY_PATH", fake::driver()).env("FAKE_CUDA_DEVICES", "2");
    line.env("HETRACE_CUPTI", fake::driver().join("libcupti.so.13"));
    let done = run(&mut line);
    assert_eq!(done.status, 0, "{}", done.err);
    let (reason, all) = fired(&scratch.path().join("trace"));
    assert_eq!((reason.as_str(), all.len()), ("trigger", 1), "{}", done.err);
    assert_eq!((all[0]["api"].as_str(), all[0]["function"].as_str()), (Some("cuda"), Some("cuMemAlloc_v2")));
    let post = command(&["postmortem"], &scratch.path().join("trace"));
    assert!(post.status == 0 && post.out.contains("cuMemAlloc_v2"), "{}{}", post.out, post.err);
}

#[test]
fn wrong_triggers_are_refused_before_the_program_starts() {
    for (options, words) in [
        (
            &["--flight", "5s", "--trigger", "clFinsh.duration > 2ms"][..],
            &["did you mean `clFinish`?", "\n  ^^^^^^^"][..],
        ),
        (&["--flight", "5s", "--trigger", "clFinish.duration > 2"], &["the unit is missing: ns"]),
        (&["--flight", "5s", "--trigger", "clEnqueueReadBuffer.sise > 1MiB"], &["did you mean `size`?"]),
        (&["--flight", "5s", "--trigger", "gpu.power > 650W"], &["add it"]),
        (
            &["--flight", "5s", "--sample=1s", "--trigger", "gpu7.power > 650W"],
            &["nothing here reports `gpu7.power`"],
        ),
        (&["--flight", "5s", "--exclude", "clFinish", "--trigger", "clFinish.failed"], &["is not recorded"]),
        (&["--trigger", "crash"], &["--flight"]),
        (&["--flight", "5s", "--trigger", ""], &["expected a condition"]),
        (&["--flight", "5s", "--trigger", "crash", "--trigger-limit", "0"], &["--trigger-limit"]),
    ] {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mut line = Command::new(hetrace());
        let done =
            run(line.current_dir(scratch.path()).arg("run").args(options).args(["--", "touch", "started"]));
        assert!(done.status != 0 && !scratch.path().join("started").exists(), "{options:?}: {}", done.err);
        for words in words {
            assert!(done.err.contains(words), "{options:?}: {}", done.err);
        }
        let left = std::fs::read_dir(scratch.path()).expect("a folder").count();
        assert_eq!(left, 0, "{options:?}");
    }
}

/// Runs a program to its end, all of it recorded.
fn traced(script: &[&str]) -> (Flight, String) {
    let mut flight = Flight::start(&[], script);
    let (_, err) = flight.end();
    (flight, err)
}

#[test]
fn the_end_of_a_crash_is_shown() {
    let (flight, err) = traced(&["launch:70", "hang", "crash"]);
    assert!(err.contains("next: hetrace postmortem trace"), "{err}");
    let post = command(&["postmortem", "-n", "3"], &flight.path("trace"));
    assert_eq!(post.status, 0, "{}", post.err);
    let lines: Vec<&str> = post.out.lines().collect();
    assert!(lines[0].ends_with("hang crash: was ended by SIGSEGV"), "{}", post.out);
    let hangs = lines.iter().position(|line| line.contains("  in   ")).expect("a call");
    assert!(lines[hangs].contains("clWaitForEvents(num_events=1, event_list=[0x"), "{}", post.out);
    assert!(lines[hangs].contains("<not returned for "), "{}", post.out);
    // The thread that hangs comes first; it had made no calls before.
    assert!(lines[hangs - 1].starts_with("process ") && lines[hangs + 1].is_empty(), "{}", post.out);
    let main = lines.iter().position(|line| line.contains("in no recorded call")).expect("the main thread");
    let last: Vec<&str> = lines[main + 1..].iter().take_while(|line| !line.is_empty()).copied().collect();
    assert_eq!(last.len(), 3, "{}", post.out);
    assert!(last[2].contains("clCreateUserEvent("), "{}", post.out);
    assert!(post.out.contains("all commands that were enqueued have ended"), "{}", post.out);
}

#[test]
fn commands_without_an_end_are_shown_by_queue() {
    // Killed while commands may be in flight, in whatever state they are.
    let (flight, _) = traced(&["launch:3", "touch:a", "enqueue:4", "kill"]);
    let post = command(&["postmortem"], &flight.path("trace"));
    assert_eq!(post.status, 0, "{}", post.err);
    assert!(post.out.contains("4 commands enqueued and not known to have ended"), "{}", post.out);
    assert_eq!(post.out.matches("clEnqueueNDRangeKernel(").count(), 8, "{}", post.out);
}

#[test]
fn the_end_of_what_ended_well_is_shown_as_well() {
    let (flight, err) = traced(&["launch:70"]);
    assert!(err.contains("next: hetrace ") && !err.contains("next: hetrace postmortem"), "{err}");
    let post = command(&["postmortem"], &flight.path("trace"));
    assert!(post.out.contains("launch:70: ended with status 0"), "{}", post.out);
    assert!(!post.out.contains("  in   "), "{}", post.out);
    let packed = flight.path("packed.hetrace");
    run(Command::new(hetrace()).arg("pack").arg(flight.path("trace")).arg("-o").arg(&packed));
    assert_eq!(command(&["postmortem"], &packed).out, post.out);
    let nothing = command(&["postmortem"], &flight.path("nothing"));
    assert!(nothing.status == 125 && nothing.out.is_empty(), "{}", nothing.out);
}
