//! What a run recorded inside of kernels, in each command that shows it.

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_ctf::read::{Merge, Trace};
use hetrace_tests::bed;
use hetrace_tests::hetrace;

use super::run::Run;
use super::{ALL, Bed, TEXT, check_recorded};

/// A reading command with the trace of a run; its stdout and stderr.
pub fn read(run: &Run, arguments: &[&str]) -> (String, String) {
    let mut line = Command::new(hetrace());
    line.current_dir(run.scratch.path()).args(arguments).arg("trace");
    let done = bed::run(&mut line);
    assert_eq!(done.status, 0, "{arguments:?}: {}", done.err);
    (done.out, done.err)
}

/// Three launches of each of two kernels, each of which records that a lane begins, as twins of this mode do.
fn recorded() -> Run {
    let run = Bed::new(TEXT.as_bytes()).run(&[ALL, &["--inside-mode", "branches"]].concat(), &["data"], &[]);
    check_recorded(&run);
    run
}

#[test]
fn print_and_timeline_and_why_show_it() {
    let run = recorded();
    let (out, err) = read(&run, &["print", "--inside"]);
    assert_eq!((out.lines().count(), err.as_str()), (6, ""), "{out}{err}");
    assert!(out.lines().all(|line| line.contains(" (0,0,0) warp 0 SM 0: begin lanes 00000001")), "{out}");
    let (one, _) = read(&run, &["print", "--inside", "--filter", "k1*"]);
    assert_eq!((one.lines().count(), one.matches(" k1000 ").count()), (3, 3), "{one}");

    let (_, err) = read(&run, &["timeline", "-o", "drawn.pftrace"]);
    assert!(!err.contains("not drawn"), "{err}");
    let drawn = std::fs::read(run.scratch.path().join("drawn.pftrace")).expect("a time line");
    // Lanes of which only the begin is known are resident for no time, so counters of them have nothing to show.
    for row in ["inside kernels", "SM 0: thread blocks", "SM 0: warps"] {
        assert!(drawn.windows(row.len()).any(|part| part == row.as_bytes()), "{row}");
    }
    let (_, err) = read(&run, &["timeline", "-o", "less.pftrace", "--inside-slices", "5"]);
    assert!(err.contains("7 thread blocks and warps inside of kernels were not drawn"), "{err}");

    let (json, _) = read(&run, &["why", "--json"]);
    let why: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let kernels = why["inside"].as_array().expect("kernels");
    let mut names: Vec<&str> = kernels.iter().filter_map(|kernel| kernel["kernel"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["k1000", "k2000"]);
    assert!(kernels.iter().all(|kernel| kernel["launches"] == 3), "{json}");
    let (json, _) = read(&run, &["tally", "--inside", "--json"]);
    let tally: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(tally["inside"].as_array().map(Vec::len), Some(2), "{json}");
}

#[test]
fn exports_have_it() {
    let run = recorded();
    let (_, err) = read(&run, &["export", "-f", "ctf-inside"]);
    assert_eq!(err, "");
    let folder = run.scratch.path().join("trace.inside");
    let trace = Trace::open(&folder).expect("a trace");
    let mut events = Merge::new(&trace);
    let mut names = Vec::new();
    while let Some(event) = events.next_event() {
        names.push(event.expect("an event").class().name.clone());
    }
    assert_eq!(names, ["inside:begin"; 6]);
    babeltrace(&folder);
    read(&run, &["export", "-f", "parquet"]);
    assert_eq!(files(&run.scratch.path().join("trace.parquet/inside")).len(), 1);
}

/// babeltrace2 reads it, too, and has nothing to complain about.
fn babeltrace(folder: &Path) {
    let done = bed::run(Command::new("babeltrace2").arg(folder));
    assert_eq!((done.status, done.err.as_str(), done.out.lines().count()), (0, "", 6), "{}", done.out);
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// There is nothing to export: that is an error, and nothing is left behind.
fn check_no_export(run: &Run, why: &str) {
    let before = names(run.scratch.path());
    let mut line = Command::new(hetrace());
    line.current_dir(run.scratch.path()).args(["export", "-f", "ctf-inside", "trace"]);
    let done = bed::run(&mut line);
    assert_eq!((done.status, done.out.as_str()), (125, ""), "{}", done.err);
    assert!(done.err.contains(why), "{}", done.err);
    assert_eq!(names(run.scratch.path()), before);
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

#[test]
fn a_run_without_it_says_so() {
    let run = Bed::new(TEXT.as_bytes()).run(&[], &["data"], &[]);
    let (out, err) = read(&run, &["print", "--inside"]);
    assert!(out.is_empty() && err.contains("nothing inside of kernels was recorded"), "{out}{err}");
    check_no_export(&run, "nothing inside of kernels was recorded");
    // Wanted, and refused: there is no event either.
    let refused = Bed::new(TEXT.as_bytes()).run(&["--inside", "k3000"], &["data"], &[]);
    check_no_export(&refused, "no kernel has recorded anything inside");
    let (json, _) = read(&run, &["why", "--json"]);
    assert!(!json.contains("\"inside\""), "{json}");
}
