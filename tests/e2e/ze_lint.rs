//! What `hetrace lint` says of Level Zero's misuse: a program with one fault at a time (`tests/programs/ze/faults.c`), on the
//! real loader and the fake driver.

use std::collections::BTreeSet;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::fake_ze::programs;
use hetrace_tests::hetrace;

/// The fault that is asked for, and the rules that have something to say of it.
const FAULTS: &[(&str, &[&str])] = &[
    ("list-state open", &["list-state"]),
    ("list-state closed", &["list-state"]),
    ("list-state in flight", &["list-state"]),
    ("released-in-use list", &["released-in-use"]),
    ("released-in-use", &["released-in-use"]),
    ("event-not-reset", &["event-not-reset"]),
    ("event-not-reset fence", &["event-not-reset"]),
    // Commands that never run are in flight when their list ends.
    ("deadlock", &["deadlock", "released-in-use"]),
    ("event-never-set", &["event-never-set", "released-in-use"]),
    ("slot-in-use", &["slot-in-use"]),
    ("wrong-queue", &["wrong-queue"]),
    ("wrong-engine", &["wrong-engine"]),
    ("engines-not-asked", &["engines-not-asked"]),
    ("wrong-context memory", &["wrong-context"]),
    ("out-of-bounds", &["out-of-bounds"]),
    ("use-after-release", &["use-after-release"]),
    ("null-argument copy", &["null-argument"]),
    ("null-argument", &["null-argument"]),
    ("unknown-object", &["unknown-object"]),
    // It ends before it has destroyed anything.
    ("unfinished-call", &["unfinished-call", "leak"]),
    ("outlives-owner", &["outlives-owner"]),
    ("concurrent-use", &["concurrent-use"]),
    ("wrong-tag", &["wrong-tag"]),
    ("uninitialized-next", &["uninitialized-next"]),
    // Fences are leaked, and their queue ends.
    ("leak", &["leak", "outlives-owner"]),
    ("nothing", &[]),
];

/// What the program does whatever is wrong: as loaders before 1.10 want it.
const DEPRECATED: &str = "deprecated";

/// The findings about a run of the program with a fault: rule and message; none where Level Zero is not.
fn findings(fault: &str) -> Option<Vec<(String, String)>> {
    let folder = programs()?;
    let scratch = tempfile::tempdir().expect("scratch");
    let (trace, driver) = (scratch.path().join("trace"), folder.join("libze_fake.so"));
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "-o"]).arg(&trace).arg("--").arg(folder.join("faults")).arg(fault);
    let done = run(command.env("ZE_ENABLE_ALT_DRIVERS", &driver).env("FAKE_ZE", &driver));
    assert_eq!(done.status, 7, "{fault}: {}{}", done.out, done.err);
    let done = run(Command::new(hetrace()).arg("lint").arg(&trace).args(["--json", "--fail-on", "never"]));
    let report: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let text = |finding: &serde_json::Value, member: &str| finding[member].as_str().unwrap_or("").to_owned();
    let all = report["findings"].as_array().expect("findings").iter();
    Some(all.map(|finding| (text(finding, "rule"), text(finding, "message"))).collect())
}

#[test]
fn each_fault_is_found_and_nothing_else() {
    let mut wrong = Vec::new();
    for (fault, rules) in FAULTS {
        let Some(found) = findings(fault) else { return };
        let names: BTreeSet<&str> =
            found.iter().map(|(rule, _)| rule.as_str()).filter(|r| *r != DEPRECATED).collect();
        assert!(found.iter().any(|(rule, _)| rule == DEPRECATED), "{fault}: {found:?}");
        if names != rules.iter().copied().collect() {
            wrong.push(format!("{fault}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_follows_a_struct_is_shown_as_it_was_passed() {
    let Some(found) = findings("uninitialized-next") else { return };
    let what = &found.iter().find(|(rule, _)| rule == "uninitialized-next").expect("a finding").1;
    for part in [
        "zeDeviceGetComputeProperties",
        "ze_device_compute_properties_t",
        "0xa5a5a5a5a5a5a5a5",
        "a5 a5 a5 a5",
    ] {
        assert!(what.contains(part), "{part}: {what}");
    }
}

/// As comments of the headers say; with the versions that brought it.
#[test]
fn deprecated_functions_are_known_by_the_headers_comments() {
    let Some(found) = findings("nothing") else { return };
    let all: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
    let [what] = all.as_slice() else { panic!("{all:?}") };
    for part in ["zeInit", "zeDriverGet", "1.10", "zeInitDrivers"] {
        assert!(what.contains(part), "{part}: {what}");
    }
}
