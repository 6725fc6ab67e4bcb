//! Probes in a program's code: each hit is recorded, with its arguments, on its thread, and losses are counted.

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::counts::manifest;
use hetrace_tests::{Done, has_tracepoints, hetrace};
use tempfile::TempDir;

/// Whether probes can be recorded here; says why not.
fn possible() -> bool {
    let kernel = Path::new("/sys/bus/event_source/devices/uprobe/type").exists();
    let possible = kernel && has_tracepoints();
    if !possible {
        println!("SKIPPED: no user probes here (root or CAP_PERFMON, and CONFIG_UPROBE_EVENTS)");
    }
    possible
}

fn recorded(scratch: &TempDir, options: &[&str], times: u32) -> (Done, PathBuf) {
    let trace = scratch.path().join("trace");
    let mut command = Command::new(hetrace());
    command
        .args(["run", "-o"])
        .arg(&trace)
        .args(options)
        .arg("--")
        .arg(program("usdt"))
        .arg(times.to_string());
    let done = run(&mut command);
    (done, trace)
}

/// The lines of `print` with hits of a probe.
fn hits(trace: &Path, probe: &str) -> Vec<String> {
    let printed = run(Command::new(hetrace()).args(["print"]).arg(trace));
    assert_eq!(printed.status, 0, "{}", printed.err);
    let name = format!("kernel usdt:hetest:{probe}:");
    printed.out.lines().filter(|line| line.contains(&name)).map(str::to_owned).collect()
}

/// An argument of each hit.
fn arguments(lines: &[String], name: &str) -> Vec<i64> {
    let of = |line: &String| {
        let (_, rest) = line.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{name}: {line}"));
        let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse::<i64>().unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    lines.iter().map(of).collect()
}

#[test]
fn each_hit_is_recorded_with_its_arguments() {
    if !possible() {
        return;
    }
    let scratch = TempDir::new().expect("scratch");
    // One that is not ours passes the same probes meanwhile.
    let other = Command::new(program("usdt")).arg("2000000000").stdout(std::process::Stdio::null()).spawn();
    let mut other = other.expect("a program");
    let (done, trace) = recorded(&scratch, &["--usdt", "hetest:begin", "--usdt", "*:guarded"], 50);
    other.kill().and_then(|()| other.wait()).expect("it runs until it is ended");
    assert_eq!(done.status, 0, "{}", done.err);
    // The program learns that somebody listens.
    assert!(done.out.contains("guarded: heard"), "{}", done.out);
    // Two threads and a child.
    let begins = hits(&trace, "begin");
    assert_eq!((begins.len(), hits(&trace, "guarded").len(), hits(&trace, "end").len()), (101, 101, 0));
    let mut small = arguments(&begins, "arg1");
    small.sort_unstable();
    let mut expected: Vec<i64> = (0..50).chain(0..50).chain(0..1).map(|i: i64| -i).collect();
    expected.sort_unstable();
    assert_eq!(small, expected);
    let mut large: Vec<i64> = arguments(&begins, "arg2");
    large.sort_unstable();
    expected.iter_mut().for_each(|i| *i = 0x1_0000_0000 - *i);
    expected.sort_unstable();
    assert_eq!(large, expected);
    assert!(arguments(&begins, "arg3").iter().all(|number| *number == 513));
    assert!(arguments(&begins, "unread").iter().all(|bits| *bits == 0));

    let tally = run(Command::new(hetrace()).arg("tally").arg(&trace)).out;
    let row = tally.lines().find(|line| line.contains("hetest:begin")).unwrap_or_else(|| panic!("{tally}"));
    assert_eq!(
        row.split(['│', '|', ' ']).filter(|w| !w.is_empty()).collect::<Vec<_>>(),
        ["hetest:begin", "101", "3"]
    );
    let file = scratch.path().join("timeline");
    let timeline = run(Command::new(hetrace()).arg("timeline").arg(&trace).arg("-o").arg(&file));
    assert_eq!(timeline.status, 0, "{}", timeline.err);
    let drawn = std::fs::read(&file).expect("a timeline");
    assert!(drawn.windows(12).any(|bytes| bytes == b"hetest:begin"), "not in the timeline");
}

/// `begin` and `end` are a range by their names, `begin` and `guarded` by the user's word.
#[test]
fn pairs_of_probes_are_ranges() {
    if !possible() {
        return;
    }
    for (asked, name, ends) in [
        (["--usdt", "hetest:*"], "hetest:begin..end", "end"),
        (["--usdt", "hetest:begin..guarded"], "hetest:begin..guarded", "guarded"),
    ] {
        let scratch = TempDir::new().expect("scratch");
        let (done, trace) = recorded(&scratch, &asked, 50);
        assert_eq!(done.status, 0, "{}", done.err);
        let tally = run(Command::new(hetrace()).args(["tally", "--json"]).arg(&trace)).out;
        let tally: serde_json::Value = serde_json::from_str(&tally).expect("JSON");
        let rows = tally["probe_ranges"].as_array().unwrap_or_else(|| panic!("{tally}"));
        let number = |name: &str| rows[0][name].as_u64().unwrap_or_else(|| panic!("{name}: {rows:?}"));
        assert!(rows.len() == 1 && rows[0]["name"] == name, "{rows:?}");
        assert_eq!(["ranges", "open", "threads"].map(number), [101, 0, 3], "{rows:?}");
        let [least, most, all] = ["min_ns", "max_ns", "total_ns"].map(number);
        assert!(0 < least && least <= most && most < all && all <= most * 101, "{rows:?}");
        let table = run(Command::new(hetrace()).arg("tally").arg(&trace)).out;
        assert!(table.contains("Ranges between probes") && table.contains(name), "{table}");
        let ended = hits(&trace, ends);
        let said = format!("  ({name}, ");
        assert!(ended.len() == 101 && ended.iter().all(|line| line.contains(&said)), "{ended:?}");
        assert!(hits(&trace, "begin").iter().all(|line| !line.contains(&said)), "it only begins there");
        let file = scratch.path().join("timeline");
        let timeline = run(Command::new(hetrace()).arg("timeline").arg(&trace).arg("-o").arg(&file));
        assert_eq!(timeline.status, 0, "{}", timeline.err);
        let drawn = std::fs::read(&file).expect("a timeline");
        assert!(drawn.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "not in the timeline");
        // The program uses no API: exports have its ranges all the same.
        let file = scratch.path().join("chrome.json");
        let chrome =
            run(Command::new(hetrace()).args(["export", "-f", "chrome", "-o"]).arg(&file).arg(&trace));
        assert_eq!(chrome.status, 0, "{}", chrome.err);
        let chrome = std::fs::read_to_string(&file).expect("events");
        let begun = "\"cat\":\"range\",\"id\":";
        let of = |kind: &str| {
            let kind = format!("{{\"ph\":\"{kind}\",");
            chrome.lines().filter(|l| l.starts_with(&kind) && l.contains(begun) && l.contains(name)).count()
        };
        assert_eq!([of("b"), of("e")], [101, 101], "{chrome}");
        let folder = scratch.path().join("otf2");
        let otf2 = run(Command::new(hetrace()).args(["export", "-f", "otf2", "-o"]).arg(&folder).arg(&trace));
        assert_eq!(otf2.status, 0, "{}", otf2.err);
        let definitions = std::fs::read(folder.join("traces.def")).expect("definitions");
        assert!(definitions.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "not in OTF2");
    }
}

#[test]
fn nobody_listens_without_being_asked() {
    let scratch = TempDir::new().expect("scratch");
    // A file of its own: probes that another test records are for all that run the same file.
    let copy = scratch.path().join("usdt");
    std::fs::copy(program("usdt"), &copy).expect("a copy");
    let mut command = Command::new(hetrace());
    let done = run(command.args(["run", "-o"]).arg(scratch.path().join("trace")).arg("--").arg(copy));
    assert!(done.status == 0 && done.out.contains("guarded: unheard"), "{done:?}");
}

#[test]
fn probes_that_are_not_there_are_an_error() {
    if !possible() {
        return;
    }
    let scratch = TempDir::new().expect("scratch");
    for (asked, says) in [
        ("hetest:ended", "hetest:begin, hetest:end, hetest:guarded"),
        ("begin", "expected PROVIDER:PROBE"),
        ("/nowhere:a:b", "are none"),
    ] {
        let (done, trace) = recorded(&scratch, &["--usdt", asked], 1);
        assert!(
            done.status != 0 && done.err.contains("--usdt") && done.err.contains(says),
            "{asked}: {done:?}"
        );
        assert!(!done.out.contains("guarded") && !trace.exists(), "the program ran: {done:?}");
    }
}

/// What does not fit into the kernel's ring buffers is counted: hits that are there and those that are lost are all.
#[test]
fn lost_hits_are_counted() {
    if !possible() {
        return;
    }
    let scratch = TempDir::new().expect("scratch");
    let options = ["--usdt", "hetest:*", "--os-buffer", "4", "--os-syscalls", "none"];
    let (done, trace) = recorded(&scratch, &options, 20_000);
    assert_eq!(done.status, 0, "{}", done.err);
    let there: usize = ["begin", "guarded", "end"].iter().map(|probe| hits(&trace, probe).len()).sum();
    let dropped = manifest(&trace.join("hetrace"))["os"]["dropped"].as_u64().expect("a number") as usize;
    let all = 3 * 40_001;
    // Among the dropped are other events of the system.
    assert!(there <= all && there + dropped >= all, "{there} recorded and {dropped} dropped of {all}");
    assert!(there < all, "nothing was lost of {all}: the test shows nothing");
}

/// Who may not gets told so, and what would help, before the program starts.
#[test]
fn without_privilege_it_is_an_error() {
    let is_root = run(Command::new("id").arg("-u")).out.trim() == "0";
    if !is_root {
        println!("SKIPPED: only root can become another user");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let scratch = TempDir::new().expect("scratch");
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scratch.path(), all.clone()).expect("a mode");
    let copy = scratch.path().join("hetrace");
    std::fs::copy(hetrace(), &copy).expect("a copy");
    std::fs::set_permissions(&copy, all).expect("a mode");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
    command.args(["run", "-o", "/tmp/never", "--usdt", "a:b", "--", "echo", "ran"]);
    let done = run(command.current_dir("/"));
    if done.err.contains("no probe matches") {
        println!("SKIPPED: ordinary users may have tracepoints here");
        return;
    }
    assert!(done.status != 0 && !done.out.contains("ran"), "{done:?}");
    assert!(done.err.contains("--usdt needs root or CAP_PERFMON") && done.err.contains("sudo "), "{done:?}");
}
