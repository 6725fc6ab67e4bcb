//! What a session has beside calls: events of the operating system, telemetry; and flight recordings.

use super::*;

/// An event as babeltrace2 shows it: time in nanoseconds, and the line.
fn events(trace: &Path) -> Vec<(u64, String)> {
    let read = run(Command::new("babeltrace2").arg("--clock-cycles").arg("--no-delta").arg(trace));
    assert_eq!((read.status, &*read.err), (0, ""), "babeltrace2 has nothing to complain of");
    let event = |line: &str| {
        let (time, rest) = line.strip_prefix('[').and_then(|l| l.split_once("] ")).expect("a time");
        (time.trim_start_matches('0').parse().unwrap_or(0), rest.to_owned())
    };
    read.out.lines().map(event).collect()
}

fn says_of_os() -> String {
    let said = run(Command::new(hetrace()).args(["doctor", "--json"])).out;
    let findings: Value = serde_json::from_str(&said).expect("JSON");
    let own = findings.as_array().expect("a list").iter().find(|f| f["what"] == "--os").expect("a finding");
    own["says"].as_str().expect("text").to_owned()
}

/// The manifest of a trace with events of the operating system.
fn manifest(bench: &Bench, trace: &str) -> Value {
    let text = fs::read_to_string(bench.path(trace).join("hetrace/hetrace/manifest.json"));
    serde_json::from_str(&text.expect("a manifest")).expect("JSON")
}

/// Begins and ends of the capture windows.
fn windows(manifest: &Value) -> Vec<(u64, u64)> {
    let number = |of: &Value| of.as_u64().expect("a time");
    let windows = manifest["capture"]["windows"].as_array().expect("windows");
    windows.iter().map(|w| (number(&w["begin_ns"]), number(&w["end_ns"]))).collect()
}

#[test]
fn events_of_the_system_and_telemetry_follow_the_processes_and_pause_with_the_session() {
    let says = says_of_os();
    if !says.starts_with("tracepoints") {
        eprintln!("SKIPPED: no tracepoints here: {says}");
        return;
    }
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    let script = [
        "launch:5", "touch:a1", "wait:1", "launch:5", "touch:a2", "wait:2", "launch:5", "touch:a3", "wait:3",
        "launch:5", "touch:a4", "wait:4",
    ];
    let early = bench.dormant(&script);
    bench.wait_for("a1");
    bench.well(&["start", "-o", "trace", "--os", "tree", "--os-buffer", "32768", "--sample", "20ms"]);
    // One that begins later, and is found when it records.
    let late = bench.dormant(&["launch:3", "touch:b1", "wait:2", "launch:3", "touch:b2", "wait:4"]);
    bench.go("1");
    ["a2", "b1"].iter().for_each(|name| bench.wait_for(name));
    let session = bench.status()["service"]["session"].clone();
    assert_eq!((session["os"].as_str(), session["sampled"].as_bool()), (Some("tracepoints"), Some(true)));
    bench.well(&["pause"]);
    bench.go("2");
    ["a3", "b2"].iter().for_each(|name| bench.wait_for(name));
    std::thread::sleep(Duration::from_millis(300));
    bench.well(&["resume"]);
    bench.go("3");
    bench.wait_for("a4");
    let said = bench.well(&["stop"]);
    bench.go("4");
    bench.ended();
    assert!(said.contains("next: hetrace tally"), "{said}");

    let manifest = manifest(&bench, "trace");
    assert_eq!(manifest["os"]["way"], "tracepoints", "{manifest}");
    let windows = windows(&manifest);
    let [first, second] = windows[..] else { panic!("two windows: {windows:?}") };
    let kernel = events(&bench.path("trace/kernel"));
    assert_eq!(kernel.len() as u64, manifest["os"]["events"].as_u64().expect("a number"));
    are_of_the_windows(&kernel, [early, late], first, second);
    stands_still(&events(&bench.path("trace/hetrace")), first, second);
    for command in ["check", "tally", "print"] {
        let text = bench.well(&[command, "trace"]);
        assert!(
            !text.contains("INCOMPLETE") && !text.contains("no thread of the program"),
            "{command}: {text}"
        );
    }
}

/// Whether there are switches of two processes in the first window, of the first process in the second, and nothing in
/// between.
fn are_of_the_windows(
    kernel: &[(u64, String)],
    pids: [u32; 2],
    (first, closed): (u64, u64),
    (opened, last): (u64, u64),
) {
    let switches = |pid: u32, from: u64, to: u64| {
        let is_to =
            |line: &str| line.contains("sched_switch") && line.contains(&format!("next_tid = {pid},"));
        kernel.iter().filter(|(time, line)| (from..=to).contains(time) && is_to(line)).count()
    };
    assert!(pids.iter().all(|pid| switches(*pid, first, closed) > 0), "switches before the pause");
    assert!(switches(pids[0], opened, last) > 0, "switches after the pause");
    // What was in flight when the window closed, and what was opened before it opened again.
    let paused = kernel.iter().filter(|(_, l)| l.contains("hetrace_recording_paused")).map(|(t, _)| *t).max();
    let paused = paused.expect("the pause");
    let begins = kernel.iter().map(|(t, _)| *t).find(|time| *time > paused).expect("events after it");
    assert!(paused >= closed && begins <= opened, "{paused} {begins}: {closed} {opened}");
    assert!(begins - paused > 200_000_000, "{paused} to {begins}");
}

/// Whether there is telemetry in both windows, and none for the most part of what is between them.
fn stands_still(program: &[(u64, String)], (first, closed): (u64, u64), (opened, last): (u64, u64)) {
    let is_sample = |line: &str| line.contains("telemetry:host_memory");
    let samples: Vec<u64> = program.iter().filter(|(_, l)| is_sample(l)).map(|(time, _)| *time).collect();
    let inside = |from: u64, to: u64| samples.iter().filter(|time| (from..=to).contains(time)).count();
    // The last sample is made after the end.
    assert!(inside(first, closed) > 0 && inside(opened, last + 400_000_000) > 0, "{samples:?}");
    let gaps =
        samples.windows(2).filter(|two| two[0] <= opened && two[1] >= closed).map(|two| two[1] - two[0]);
    assert!(gaps.max() >= Some(250_000_000), "{samples:?}: {closed} to {opened}");
}

#[test]
fn an_ordinary_user_gets_its_own_switches_and_learns_why() {
    if user() != 0 {
        eprintln!("SKIPPED: this test needs root, to be somebody else");
        return;
    }
    let mut bench = Bench::new(Some(SOMEBODY));
    bench.serve(&[]);
    let refused = bench.hetrace(&["start", "-o", "machine", "--os", "system"]);
    assert_eq!(refused.status, 125, "{}", refused.err);
    assert!(
        refused.err.contains("may not record events of the machine") && refused.err.contains("root"),
        "{refused:?}"
    );
    assert!(!bench.path("machine").exists(), "nothing is left of it");
    let pid = bench.dormant(&["touch:a1", "wait:1", "launch:5", "touch:a2", "wait:2", "launch:5"]);
    bench.wait_for("a1");
    let said = bench.well(&["start", "-o", "trace", "--os", "tree"]);
    assert!(said.contains("operating system: only") && said.contains("For more:"), "{said}");
    bench.go("1");
    bench.wait_for("a2");
    bench.well(&["stop"]);
    bench.go("2");
    bench.ended();
    let kernel = events(&bench.path("trace/kernel"));
    let manifest = manifest(&bench, "trace");
    let seen = match manifest["os"]["way"].as_str() {
        Some("switches") => format!("perf_thread_in: {{ cpu_id = 0 }}, {{ pid = {pid}"),
        Some("statistics") => "proc_schedstat".to_owned(),
        other => panic!("{other:?}: {manifest}"),
    };
    let any = |line: &str| {
        line.contains(seen.split(':').next().unwrap_or_default()) && line.contains(&format!("pid = {pid}"))
    };
    assert!(kernel.iter().any(|(_, line)| any(line)), "{} events, none of {pid}", kernel.len());
    bench.end_service("TERM");
    let _ = fs::remove_dir_all(format!("/dev/shm/hetrace-{SOMEBODY}"));
}

#[test]
fn a_flight_recording_writes_what_is_kept_when_it_is_asked_to() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    let refused = bench.hetrace(&["start", "-o", "flight", "--flight", "10ms"]);
    assert!(refused.status == 2 && refused.err.contains("at least 1s"), "{refused:?}");
    let said = bench.well(&["start", "-o", "flight", "--flight", "60s"]);
    assert!(said.contains("hetrace snapshot"), "{said}");
    let pid = bench.dormant(&["launch:9", "touch:1", "wait:2", "launch:5", "touch:3", "wait:4", "launch:7"]);
    bench.wait_for("1");
    bench.until("a process", || bench.status()["service"]["session"]["processes"] == 1);
    assert_eq!(bench.status()["service"]["session"]["flight"], true);
    bench.well(&["snapshot"]);
    assert_eq!(calls(&bench.seen("flight"), LAUNCH), 9);
    bench.go("2");
    bench.wait_for("3");
    bench.well(&["snapshot", &pid.to_string()]);
    let said = bench.well(&["stop"]);
    assert!(said.contains("flight-2"), "{said}");
    assert_eq!(calls(&bench.seen("flight-2"), LAUNCH), 14);
    ["flight", "flight-2"].iter().for_each(|trace| is_whole(&bench, trace));
    assert!(!bench.path("flight.flight").exists() && !bench.path("flight-3").exists());
    // Nobody asks, and nothing is written. The next session is an ordinary one.
    bench.well(&["start", "-o", "none", "--flight", "5s"]);
    let said = bench.well(&["stop"]);
    assert!(said.contains("nothing is written") && !bench.path("none").exists(), "{said}");
    bench.well(&["start", "-o", "trace"]);
    bench.go("4");
    bench.ended();
    bench.well(&["stop"]);
    assert_eq!(calls(&bench.seen("trace"), LAUNCH), 7);
    is_whole(&bench, "trace");
}

#[test]
fn what_a_killed_service_kept_is_said_to_be_lost() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "flight", "--flight", "60s"]);
    bench.dormant(&["launch:9", "touch:1", "wait:2", "launch:5"]);
    bench.wait_for("1");
    bench.end_service("KILL");
    bench.serve(&[]);
    assert!(bench.status()["service"]["session"].is_null(), "there is nothing to go on with");
    bench.go("2");
    bench.ended();
    bench.well(&["start", "-o", "trace"]);
    bench.well(&["stop"]);
    is_whole(&bench, "trace");
}
