//! `lint` and `why` on real programs: each planted fault is found, and nothing where there is none.

use std::process::Command;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::{Platform, Traced, bare, hetrace, trace, trace_with};
use serde_json::Value;

/// What is planted, what is to be found: mode of the program, rule, severity, function, how often.
const FAULTS: [(&str, &str, &str, &str, u64); 7] = [
    ("leak", "leak", "warning", "clCreateBuffer", 3),
    ("events", "leak", "warning", "clEnqueueNDRangeKernel", 20),
    ("blocking", "sync-after-launch", "hint", "clEnqueueReadBuffer", 20),
    ("arguments", "redundant-set-arg", "hint", "clSetKernelArg", 20),
    ("polls", "busy-poll", "warning", "clGetEventInfo", 200_000),
    ("builds", "build-in-loop", "warning", "clBuildProgram", 4),
    ("bounds", "out-of-bounds", "error", "clEnqueueReadBuffer", 1),
];

fn faults(mode: &str) -> Traced {
    let traced = trace(Platform::Pocl, &["faults", mode]);
    assert_eq!(traced.done.status, 0, "{mode}: {}", traced.done.err);
    traced
}

fn hetrace_on(traced: &Traced, arguments: &[&str]) -> Done {
    run(Command::new(hetrace()).args(arguments).arg(&traced.folder))
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("no JSON: {e}: {}{}", done.out, done.err))
}

fn rows<'v>(value: &'v Value, what: &str) -> &'v [Value] {
    value[what].as_array().unwrap_or_else(|| panic!("{what} is no list in {value}"))
}

fn number(value: &Value, what: &str) -> u64 {
    value[what].as_u64().unwrap_or_else(|| panic!("{what} is no number in {value}"))
}

fn text<'v>(value: &'v Value, what: &str) -> &'v str {
    value[what].as_str().unwrap_or_else(|| panic!("{what} is no text in {value}"))
}

#[test]
fn lint_finds_each_planted_fault_and_nothing_else() {
    for (mode, rule, severity, function, count) in FAULTS {
        let traced = faults(mode);
        let done = hetrace_on(&traced, &["lint", "--json", "--fail-on", "never"]);
        assert_eq!(done.status, 0, "{mode}: {}", done.err);
        let report = json(&done);
        lint_json(&report);
        let [finding] = rows(&report, "findings") else { panic!("{mode}: {report}") };
        assert_eq!((text(finding, "rule"), text(finding, "severity")), (rule, severity), "{mode}");
        assert_eq!(number(finding, "count"), count, "{mode}: {finding}");
        let call = &finding["occurrences"][0]["calls"][0];
        let shown = format!("{} {}", text(finding, "message"), text(call, "call"));
        assert!(shown.contains(function), "{mode}: {shown}");
        // The same for people and for other tools.
        let text = hetrace_on(&traced, &["lint", "--fail-on", "never"]).out;
        assert!(text.contains(&format!("{severity}[{rule}]: ")), "{mode}: {text}");
        let log = json(&hetrace_on(&traced, &["lint", "--sarif", "--fail-on", "never"]));
        let results = sarif(&log);
        let level = if severity == "hint" { "note" } else { severity };
        assert_eq!(results, [(rule.to_owned(), level.to_owned(), count)], "{mode}");
        // A severity fails on itself and on what is less grave.
        let grades = ["hint", "warning", "error"];
        let own = grades.iter().position(|grade| *grade == severity).expect("a grade");
        for (grade, name) in grades.iter().enumerate() {
            let status = hetrace_on(&traced, &["lint", "--fail-on", name]).status;
            assert_eq!(status, i32::from(own >= grade), "{mode}: --fail-on {name}");
        }
        assert_eq!(hetrace_on(&traced, &["lint"]).status, i32::from(severity == "error"), "{mode}");
    }
}

/// What `misuse` does wrong: mode, rule, the severities that the platform may make it.
const MISUSE: [(&str, &str, &[&str]); 20] = [
    ("twice", "double-release", &["error"]),
    ("argument", "use-after-release", &["error"]),
    ("race", "race", &["warning"]),
    ("host", "race", &["error"]),
    ("unwaited", "unwaited-read", &["warning"]),
    ("nothing", "uninitialized-read", &["warning"]),
    ("map", "map-leak", &["warning"]),
    ("mapped", "mapped-in-use", &["error"]),
    ("context", "wrong-context", &["warning", "error"]),
    ("threads", "shared-kernel", &["error"]),
    ("never", "event-never-set", &["error"]),
    ("build", "ignored-error", &["warning"]),
    ("size", "ignored-error", &["warning"]),
    ("single", "local-size-one", &["hint"]),
    ("small", "small-launch", &["hint"]),
    ("finish", "redundant-sync", &["hint"]),
    ("wait", "double-wait", &["hint"]),
    ("back", "ping-pong", &["hint"]),
    ("unused", "unused-read", &["hint"]),
    ("again", "same-bytes", &["hint"]),
];

/// The rules and severities of what is found, but for what a machine may add by being slow or small.
fn found(traced: &Traced) -> Vec<(String, String)> {
    let report = json(&hetrace_on(traced, &["lint", "--json", "--fail-on", "never"]));
    lint_json(&report);
    let findings = rows(&report, "findings").iter();
    let found = findings.map(|f| (text(f, "rule").to_owned(), text(f, "severity").to_owned()));
    // Each launch may be waited for, and calls may not return in a program that is killed.
    let beside = ["sync-after-launch", "unfinished-call"];
    found.filter(|(rule, _)| !beside.contains(&rule.as_str())).collect()
}

#[test]
fn lint_finds_each_misuse_and_nothing_where_it_is_done_right() {
    for (mode, rule, severities) in MISUSE {
        let right = trace(Platform::Pocl, &["misuse", mode, "right"]);
        assert_eq!(right.done.status, 0, "{mode}: {}", right.done.err);
        let all = found(&right);
        assert!(all.is_empty(), "{mode} done right: {all:?}");
        let wrong = trace(Platform::Pocl, &["misuse", mode]);
        let all = found(&wrong);
        let [(known, severity)] = all.as_slice() else { panic!("{mode}: {all:?}") };
        assert!(known == rule && severities.contains(&severity.as_str()), "{mode}: {all:?}");
    }
}

#[test]
fn lint_names_the_object_that_a_killed_program_released_twice() {
    let traced = trace(Platform::Pocl, &["misuse", "twice"]);
    let shown = hetrace_on(&traced, &["lint"]);
    assert_eq!(shown.status, 1, "{}", shown.out);
    assert!(shown.out.contains("error[double-release]: clReleaseMemObject"), "{}", shown.out);
    for part in ["again ", "first ", "made "] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    // PoCL ends in it; a platform that reports an error has said so.
    if traced.done.status != 0 {
        assert!(shown.out.contains("ends the program in it"), "{}", shown.out);
    }
}

#[test]
fn lint_finds_nothing_where_nothing_is_wrong() {
    let traced = faults("clean");
    let done = hetrace_on(&traced, &["lint", "--json", "--fail-on", "hint"]);
    let report = json(&done);
    lint_json(&report);
    assert!(rows(&report, "findings").is_empty() && rows(&report, "notes").is_empty(), "{report}");
    assert_eq!(done.status, 0);
    let log = json(&hetrace_on(&traced, &["lint", "--sarif"]));
    assert!(sarif(&log).is_empty(), "{log}");
}

/// As docs/lint.md has it.
fn lint_json(report: &Value) {
    assert_eq!(report["schema"], 1);
    assert!(!rows(report, "command").is_empty(), "{report}");
    for (grade, all) in [("error", "errors"), ("warning", "warnings"), ("hint", "hints")] {
        let found = rows(report, "findings").iter().filter(|f| f["severity"] == grade).count();
        assert_eq!(number(report, all), found as u64, "{report}");
    }
    for finding in rows(report, "findings") {
        assert!(!text(finding, "rule").is_empty() && !text(finding, "remedy").is_empty(), "{finding}");
        assert!(number(finding, "count") > 0 && !rows(finding, "occurrences").is_empty(), "{finding}");
        for call in rows(finding, "occurrences").iter().flat_map(|o| rows(o, "calls")) {
            assert!(!text(call, "part").is_empty() && number(call, "pid") > 0 && number(call, "tid") > 0);
            assert!(number(call, "time_ns") > 0, "{call}");
            assert!(text(call, "call").starts_with(text(call, "function")), "{call}");
        }
    }
}

/// What SARIF 2.1.0 demands of the parts that are there; rule, level and count of each result.
fn sarif(log: &Value) -> Vec<(String, String, u64)> {
    assert_eq!(text(log, "version"), "2.1.0");
    assert!(text(log, "$schema").contains("sarif-2.1.0"), "{log}");
    let [one] = rows(log, "runs") else { panic!("one run: {log}") };
    let driver = &one["tool"]["driver"];
    assert!(!text(driver, "name").is_empty(), "{driver}");
    let levels = ["none", "note", "warning", "error"];
    let rules = rows(driver, "rules");
    for rule in rules {
        assert!(
            !text(rule, "id").is_empty() && !text(&rule["shortDescription"], "text").is_empty(),
            "{rule}"
        );
        assert!(!text(&rule["help"], "text").is_empty(), "{rule}");
        assert!(levels.contains(&text(&rule["defaultConfiguration"], "level")), "{rule}");
        assert_eq!(rules.iter().filter(|other| other["id"] == rule["id"]).count(), 1, "{rule}");
    }
    for invocation in rows(one, "invocations") {
        assert_eq!(invocation["executionSuccessful"], true);
    }
    let result = |result: &Value| {
        let rule = &rules[usize::try_from(number(result, "ruleIndex")).expect("small")];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(!text(&result["message"], "text").is_empty() && levels.contains(&text(result, "level")));
        assert!(!rows(result, "locations").is_empty(), "{result}");
        let mut ids = Vec::new();
        for place in rows(result, "locations").iter().chain(rows(result, "relatedLocations")) {
            ids.extend(place["id"].as_u64());
            let [logical] = rows(place, "logicalLocations") else { panic!("one place: {place}") };
            assert_eq!(text(logical, "kind"), "function");
            assert!(text(logical, "fullyQualifiedName").ends_with(text(logical, "name")), "{place}");
        }
        let all = ids.len();
        ids.dedup();
        assert_eq!((ids.len(), rows(result, "relatedLocations").len()), (all, all), "ids of their own");
        (
            text(result, "ruleId").to_owned(),
            text(result, "level").to_owned(),
            number(result, "occurrenceCount"),
        )
    };
    rows(one, "results").iter().map(result).collect()
}

/// Naps of the program `faults sleep`, each of at least so many nanoseconds.
const NAPS: u64 = 3;
const NAP: u64 = 20_000_000;

#[test]
fn why_names_the_thread_that_slept_between_launches() {
    let traced = faults("sleep");
    let report = json(&hetrace_on(&traced, &["why", "--json"]));
    let [device] = rows(&report, "devices") else { panic!("one device: {report}") };
    assert_eq!(number(device, "commands"), NAPS + 2, "launches and a read");
    // Whether clFinish waited before each nap or had come too late for that, the machine decides.
    let host = rows(device, "causes").iter().filter(|cause| text(cause, "kind").starts_with("host"));
    let host: Vec<&Value> = host.collect();
    let named = host.iter().any(|cause| cause["thread"].as_str().is_some_and(|t| t.ends_with("(sleeper)")));
    assert!(named, "{device}");
    // Each nap is in it whole; where it begins is as certain as the device's clock.
    let error = report["missing"]["clock_error_ns"].as_f64().unwrap_or(0.0) as u64;
    let least = NAPS * NAP.saturating_sub(2 * error + 1_000_000);
    let slept: u64 = host.iter().map(|cause| number(cause, "ns")).sum();
    assert!(slept >= least, "{slept} < {least}: {device}");
    assert!(hetrace_on(&traced, &["why"]).out.contains("(sleeper)"));
    sums(&report);
}

#[test]
fn what_why_shows_adds_up_to_the_window() {
    for mode in ["clean", "blocking"] {
        let traced = faults(mode);
        let report = json(&hetrace_on(&traced, &["why", "--json"]));
        sums(&report);
        // The same of a part of the time.
        let device = &report["devices"][0];
        let middle = number(device, "first_ns") + number(device, "total_ns") / 2;
        let part = json(&hetrace_on(&traced, &["why", "--json", "--to", &format!("{middle}ns")]));
        sums(&part);
        assert!(number(&part["devices"][0], "total_ns") <= number(device, "total_ns"));
    }
}

/// Times that are parts of others are together the whole.
fn sums(report: &Value) {
    assert_eq!(report["schema"], 1);
    let sum = |rows: &[Value]| rows.iter().map(|row| number(row, "ns")).sum::<u64>();
    for device in rows(report, "devices") {
        let [total, busy, idle] = ["total_ns", "busy_ns", "idle_ns"].map(|what| number(device, what));
        let parts = ["computing_ns", "copying_ns", "both_ns"].map(|what| number(device, what));
        assert_eq!((busy + idle, parts.iter().sum::<u64>()), (total, busy), "{device}");
        assert_eq!(sum(rows(device, "causes")), idle, "{device}");
        let share: f64 = rows(device, "causes").iter().filter_map(|cause| cause["share"].as_f64()).sum();
        assert!(idle == 0 || (share - 1.0).abs() < 1e-6, "{share}: {device}");
        assert_eq!(sum(rows(device, "before")), number(device, "first_ns"), "{device}");
        let window = report["window_ns"][1].as_u64();
        let end = number(report, "duration_ns").min(window.unwrap_or(u64::MAX));
        let after = sum(rows(device, "after"));
        // A command may run beyond the end of a window.
        assert_eq!(number(device, "first_ns") + total + after, end, "{device}");
    }
    let path = &report["path"];
    assert_eq!(sum(rows(path, "shares")), number(path, "ns"), "{path}");
}

#[test]
fn tally_knows_how_much_memory_was_held() {
    for (mode, most, left) in [("clean", 4096, 0), ("leak", 4096 + 3 * 1000, 3 * 1000)] {
        let traced = faults(mode);
        let tables = json(&hetrace_on(&traced, &["tally", "--json"]));
        let [row] = rows(&tables, "memory") else { panic!("{mode}: one kind on one device: {tables}") };
        assert_eq!(text(row, "kind"), "device", "{row}");
        assert_eq!(row["device"], rows(&tables, "clock_errors")[0]["device"], "{row}");
        assert_eq!((number(row, "peak_bytes"), number(row, "live_bytes")), (most, left), "{mode}: {row}");
        assert_eq!(number(row, "live_allocations"), left / 1000, "{mode}: {row}");
        let releases = &tables["memory_releases"];
        assert_eq!((number(releases, "releases"), number(releases, "unknown")), (1, 0), "{mode}");
    }
}

/// The counts of `same-bytes`, and whether each is in doubt.
fn sent_again(traced: &Traced) -> Vec<(u64, bool)> {
    let report = json(&hetrace_on(traced, &["lint", "--json", "--rule", "same-bytes", "--fail-on", "never"]));
    let findings = rows(&report, "findings").iter();
    findings.map(|finding| (number(finding, "count"), finding.get("doubt").is_some())).collect()
}

#[test]
fn hashes_tell_what_is_sent_again_from_what_has_changed() {
    for (mode, by_hash) in [("same", &[(9, false)][..]), ("changed", &[])] {
        let hashed = trace_with(Platform::Pocl, &["--hash-copies"], &["resend", mode]);
        assert_eq!(hashed.done.out, bare(Platform::Pocl, &["resend", mode]).out, "{mode}: the same results");
        assert_eq!(sent_again(&hashed), by_hash, "{mode}");
        // Without hashes the one is not seen; the other is claimed where the machine is quick, with a doubt.
        let timed = sent_again(&trace(Platform::Pocl, &["resend", mode]));
        let may_be = |(_, doubt): &(u64, bool)| *doubt && mode == "changed";
        assert!(timed.iter().all(may_be), "{mode}: {timed:?}");
    }
    let written = trace_with(Platform::Pocl, &["--hash-copies"], &["resend", "written"]);
    assert_eq!(sent_again(&written), [], "others were written in between");
}
