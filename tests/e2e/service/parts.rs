//! Sessions in several parts; flight recordings with events of the operating system, and with triggers.

use hetrace_tests::has_tracepoints;

use super::*;

/// How often the kernel trace says that a CPU went to a process.
fn switches_to(kernel: &Path, pid: u32) -> usize {
    let read = run(Command::new("babeltrace2").arg(kernel));
    assert_eq!((read.status, &*read.err), (0, ""), "babeltrace2 of {}", kernel.display());
    let to = format!("next_tid = {pid},");
    read.out.lines().filter(|line| line.contains("sched_switch") && line.contains(&to)).count()
}

/// Asks for a snapshot of this service's session: others may record meanwhile.
fn snapshot(bench: &Bench) {
    let pid = bench.service.as_ref().expect("a service").id();
    bench.well(&["snapshot", "--wait", "300", &pid.to_string()]);
}

fn parts(bench: &Bench, trace: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(bench.path(trace)).expect("a folder").flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// Calls of a function, as `tally` has them.
fn tallied(bench: &Bench, trace: &str, function: &str) -> u64 {
    let table: Value = serde_json::from_str(&bench.hetrace(&["tally", "--json", trace]).out).expect("JSON");
    let rows = table["host"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == function).map_or(0, |row| row["calls"].as_u64().expect("a number"))
}

#[test]
fn a_flight_recording_has_the_last_events_of_the_operating_system() {
    if !has_tracepoints() {
        return;
    }
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "flight", "--flight", "60s", "--os", "tree", "--os-buffer", "32768"]);
    let pid = bench.dormant(&[
        "launch:9", "touch:1", "wait:2", "launch:5", "touch:3", "wait:4", "launch:7", "touch:5", "wait:6",
    ]);
    bench.wait_for("1");
    bench.until("a process", || bench.status()["service"]["session"]["processes"] == 1);
    bench.go("2");
    bench.wait_for("3");
    snapshot(&bench);
    let first = switches_to(&bench.path("flight/kernel"), pid);
    assert!(first > 0);
    // While it pauses nothing is recorded of the system, and a snapshot can be written.
    bench.well(&["pause"]);
    std::thread::sleep(Duration::from_millis(1100));
    snapshot(&bench);
    let read = run(Command::new("babeltrace2").arg(bench.path("flight-2/kernel")));
    assert!(read.out.contains("hetrace_recording_paused"), "{}", read.err);
    bench.well(&["resume"]);
    bench.go("4");
    bench.wait_for("5");
    std::thread::sleep(Duration::from_millis(1100));
    snapshot(&bench);
    bench.go("6");
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(said.contains("flight-3"), "{said}");
    assert!(switches_to(&bench.path("flight-3/kernel"), pid) > first);
    for trace in ["flight", "flight-2", "flight-3"] {
        is_whole(&bench, trace);
    }
    assert_eq!(tallied(&bench, "flight", LAUNCH), 14);
    assert_eq!(tallied(&bench, "flight-3", LAUNCH), 21);
}

/// Whether there are two windows, of which each part has those of its time.
fn windows_are_divided(parts: &[PathBuf]) {
    let windows = |part: &Path| {
        let text = fs::read_to_string(part.join("hetrace/hetrace/manifest.json")).expect("a manifest");
        let manifest: Value = serde_json::from_str(&text).expect("JSON");
        manifest["capture"]["windows"].as_array().expect("windows").clone()
    };
    assert_eq!(windows(&parts[0]).len(), 1);
    let all: std::collections::BTreeSet<u64> = parts
        .iter()
        .flat_map(|part| windows(part))
        .map(|window| window["begin_ns"].as_u64().expect("a time"))
        .collect();
    assert_eq!(all.len(), 2, "{all:?}");
}

/// On a busy machine the kernel may drop events, which is counted: then once more.
#[test]
fn a_session_is_divided_with_the_operating_systems_events() {
    assert!(!has_tracepoints() || (0..3).any(|_| is_divided()), "events dropped each time");
}

/// Returns false if the kernel dropped events.
fn is_divided() -> bool {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&[
        "start",
        "-o",
        "job",
        "--rotate-every",
        "1s",
        "--os",
        "tree",
        "--os-buffer",
        "32768",
        "--sample",
        "20ms",
    ]);
    let pid = bench.dormant(&[
        "launch:9", "touch:1", "wait:2", "launch:5", "touch:3", "wait:4", "launch:7", "touch:5", "wait:6",
        "launch:3",
    ]);
    bench.wait_for("1");
    bench.until("parts", || bench.path("job/0003").exists());
    bench.go("2");
    bench.wait_for("3");
    snapshot(&bench);
    assert_eq!(tallied(&bench, "job", LAUNCH), 14, "while it is recorded");
    // A part that begins while it pauses.
    bench.well(&["pause"]);
    let paused = parts(&bench, "job").len();
    bench.go("4");
    bench.wait_for("5");
    bench.until("parts", || parts(&bench, "job").len() > paused + 1 || bench.status()["service"].is_null());
    bench.well(&["resume"]);
    bench.go("6");
    bench.ended();
    bench.well(&["stop"]);
    let parts = parts(&bench, "job");
    assert!(parts.len() > 3, "{parts:?}");
    let name = |part: &Path| format!("job/{}", part.file_name().expect("a name").to_string_lossy());
    let mut with_kernel = parts.iter().filter(|part| part.join("kernel").exists());
    if with_kernel.any(|part| bench.manifest(&format!("{}/hetrace", name(part)))["os"]["dropped"] != 0) {
        return false;
    }
    // Calls of the pause are not there; each other once.
    assert_eq!(tallied(&bench, "job", LAUNCH), 17);
    assert_eq!(parts.iter().map(|part| tallied(&bench, &name(part), LAUNCH)).sum::<u64>(), 17);
    assert!(parts.iter().map(|part| switches_to(&part.join("kernel"), pid)).sum::<usize>() > 0);
    parts.iter().for_each(|part| is_whole(&bench, &name(part)));
    is_whole(&bench, "job");
    let checked = bench.well(&["check", "job"]);
    assert!(checked.contains("complete and unchanged"), "{checked}");
    windows_are_divided(&parts);
    // The next session is one trace again.
    bench.well(&["start", "-o", "trace"]);
    bench.well(&["stop"]);
    assert!(bench.path("trace/metadata").exists());
    true
}

#[test]
fn top_follows_a_session_from_part_to_part() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "job", "--rotate-size", "64K"]);
    bench.dormant(&["launch:3000", "touch:1", "wait:2", "launch:3000", "touch:3", "wait:4"]);
    bench.wait_for("1");
    bench.until("parts", || bench.path("job/0002").exists());
    let pid = bench.service.as_ref().expect("a service").id().to_string();
    let launches = |line: &str| {
        let picture: Value = serde_json::from_str(line).expect("a line of JSON");
        let rows = picture["picture"]["tally"]["host"].as_array().expect("rows").clone();
        let row = rows.iter().find(|row| row["name"] == LAUNCH);
        row.map_or(0, |row| row["calls"].as_u64().expect("a number"))
    };
    let mut top = Command::new(hetrace());
    top.args(["top", &pid, "--interval", "20ms", "--format", "json"]);
    let top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hetrace");
    bench.go("2");
    bench.wait_for("3");
    // By the service, and by the folder of all parts.
    for of in [&*pid, "job"] {
        let now = bench.well(&["top", "--once", "--format", "json", of]);
        let line = now.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{now}"));
        assert_eq!(launches(line), 6000, "{of}");
    }
    // The session goes on, though its trace is in another folder now.
    bench.go("4");
    bench.ended();
    bench.well(&["stop"]);
    let done = top.wait_with_output().expect("a child");
    let all = String::from_utf8_lossy(&done.stdout).into_owned();
    let launched: Vec<u64> = all.lines().map(launches).collect();
    assert!(launched.is_sorted() && launched.last() == Some(&6000), "{launched:?}");
    assert!(parts(&bench, "job").len() > 1);
}

#[test]
fn the_services_limit_of_disk_removes_the_oldest_parts() {
    let mut bench = Bench::new(None);
    bench.serve(&["--max-disk", "12M"]);
    bench.well(&["start", "-o", "job", "--rotate-size", "1M", "--keep", "1000"]);
    bench.dormant(&["launch:300000"]);
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(said.contains("parts were removed") && !said.contains("paused for good"), "{said}");
    let size = run(Command::new("du").args(["-sb", "--"]).arg(bench.path("job"))).out;
    let size: u64 = size.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    assert!(size < 13 << 20, "{size}");
    assert!(parts(&bench, "job").len() > 1);
    is_whole(&bench, "job");
}

#[test]
fn a_service_that_takes_over_goes_on_in_the_last_part() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "job", "--rotate-every", "1s", "--sample", "20ms"]);
    bench.dormant(&["launch:9", "touch:1", "wait:2", "launch:5", "touch:3", "wait:4"]);
    bench.wait_for("1");
    bench.until("parts", || bench.path("job/0002").exists());
    bench.end_service("KILL");
    bench.serve(&[]);
    bench.go("2");
    bench.wait_for("3");
    bench.go("4");
    bench.ended();
    bench.well(&["stop"]);
    assert_eq!(tallied(&bench, "job", LAUNCH), 14);
    let said = bench.well(&["tally", "job"]);
    assert!(said.contains("not divided into parts any more"), "{said}");
}

#[test]
fn triggers_write_snapshots_of_a_session() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    for (options, why) in [
        (&["--flight", "5s", "--trigger", "crash"][..], "does not see how programs end"),
        (&["--flight", "5s", "--trigger", "clFinsh.duration > 1ms"], "did you mean `clFinish`"),
        (&["--trigger", "clFinish.duration > 1ms"], "--flight"),
    ] {
        let refused = bench.hetrace(&[&["start", "-o", "no"], options].concat());
        assert!(refused.status != 0 && refused.err.contains(why), "{options:?}: {}", refused.err);
        assert!(!bench.path("no").exists() && !bench.path("no.flight").exists(), "nothing is left");
    }
    let expression = format!("{LAUNCH}.rate > 0/s");
    bench.well(&[
        "start",
        "-o",
        "flight",
        "--flight",
        "60s",
        "--trigger",
        &expression,
        "--trigger",
        "idle > 9h",
    ]);
    bench.dormant(&["launch:9", "touch:1", "wait:2"]);
    bench.wait_for("1");
    bench.until("a snapshot that nobody asked for", || bench.path("flight/metadata").exists());
    bench.go("2");
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(said.contains("snapshot") && said.contains("`idle > 9h`: never true"), "{said}");
    let manifest = bench.manifest("flight");
    let fired = &manifest["flight"]["fired"][0];
    assert!(fired.to_string().contains(LAUNCH), "{said}: {manifest}");
    is_whole(&bench, "flight");
}
