//! Samples of processors: a program whose hot function is known, compiled without frame pointers.
//!
//! How many samples there are depends on the machine; that most of them lie where the program works does not.

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_ctf::read::Trace;
use hetrace_tests::bed::{Done, run};
use hetrace_tests::{Platform, hetrace};
use serde_json::Value;
use tempfile::TempDir;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/samples.c");

/// A run, and where its trace is.
struct Ran {
    done: Done,
    folder: PathBuf,
    scratch: TempDir,
}

/// Compiles the program with these options, and runs it in a mode under a command line that begins so.
fn ran_under(before: &[&str], flags: &[&str], options: &[&str], mode: &str) -> Ran {
    let scratch = TempDir::new().expect("a scratch folder");
    let [binary, folder] = ["samples", "trace"].map(|name| scratch.path().join(name));
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-g", "-fno-optimize-sibling-calls", "-DCL_TARGET_OPENCL_VERSION=120"]);
    let compile = compile.args(flags).arg(SOURCE).arg("-o").arg(&binary).args(["-lOpenCL", "-lpthread"]);
    let compiled = run(compile);
    assert_eq!(compiled.status, 0, "cc: run scripts/install-deps.sh: {}", compiled.err);
    let words = before.iter().map(|word| (*word).into()).chain([hetrace().into_os_string()]);
    let words: Vec<std::ffi::OsString> = words.collect();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .arg("run")
        .arg("-o")
        .arg(&folder)
        .args(options)
        .arg("--")
        .arg(&binary)
        .arg(mode);
    let done = run(command.envs(Platform::Pocl.environment(scratch.path())));
    assert_eq!(done.status, 0, "{options:?} {mode}: {}", done.err);
    Ran { done, folder, scratch }
}

fn ran(flags: &[&str], mode: &str) -> Ran {
    ran_under(&[], flags, &["--cpu-sample", "997"], mode)
}

/// What a reader says of a trace.
fn said(folder: &Path, line: &[&str]) -> String {
    let done = run(Command::new(hetrace()).args(line).arg(folder));
    assert_eq!(done.status, 0, "{line:?}: {}", done.err);
    done.out
}

fn json(folder: &Path, line: &[&str]) -> Value {
    serde_json::from_str(&said(folder, line)).expect("JSON")
}

/// Whether this machine allows samples; the reason if it does not.
fn refused() -> Option<String> {
    let done = run(Command::new(hetrace()).args(["doctor", "--json"]));
    let findings: Value = serde_json::from_str(&done.out).expect("JSON");
    let findings = findings.as_array().expect("a list");
    let found = findings.iter().find(|finding| finding["what"] == "--cpu-sample").expect("a finding");
    let says = found["says"].as_str().expect("a text");
    says.starts_with("no samples").then(|| says.to_owned())
}

macro_rules! or_skip {
    () => {
        if let Some(why) = refused() {
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
}

/// The row of a function of the program in the table.
fn row<'j>(tables: &'j Value, name: &str) -> &'j Value {
    let rows = tables["sampled"]["functions"].as_array().unwrap_or_else(|| panic!("{tables}"));
    let label = format!("{name} (samples.c)");
    rows.iter().find(|row| row["name"] == label.as_str()).unwrap_or_else(|| panic!("{label}: {rows:?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// The hot function has most of the time of its own, and all that call it have it with their callees.
fn is_hot(tables: &Value) {
    let sampled = &tables["sampled"];
    let (hot, middle, work) = (row(tables, "hot"), row(tables, "middle"), row(tables, "work"));
    let all = number(&sampled["outside_ns"]) + number(&sampled["inside_ns"]);
    assert!(number(&hot["self_ns"]) * 2 > all, "{sampled}");
    assert_eq!(hot["inside_ns"], 0, "{hot}");
    assert!(number(&middle["total_ns"]) * 10 > number(&hot["self_ns"]) * 9, "{middle} {hot}");
    assert!(number(&work["total_ns"]) >= number(&middle["total_ns"]), "{work} {middle}");
    assert!(number(&sampled["incomplete"]) * 10 < number(&sampled["samples"]), "{sampled}");
}

#[test]
fn the_hot_function_has_most_samples_without_frame_pointers() {
    or_skip!();
    for flags in [["-O2", "-fomit-frame-pointer"], ["-O0", "-fno-omit-frame-pointer"], ["-O2", "-no-pie"]] {
        let ran = ran(&flags, "work");
        is_hot(&json(&ran.folder, &["tally", "--json"]));
    }
}

#[test]
fn samples_are_on_the_time_line_and_in_tables() {
    or_skip!();
    let ran = ran(&["-O2"], "work");
    let has = |file: &Path, text: &str| {
        let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        bytes.windows(text.len()).any(|found| found == text.as_bytes())
    };
    let drawn = ran.folder.with_extension("pftrace");
    said(&ran.folder, &["timeline", "-o", &drawn.display().to_string()]);
    for text in ["CPU samples", "hot (", "stack_callers"] {
        assert!(has(&drawn, text), "{text}");
    }
    let tables = ran.folder.with_extension("parquet");
    said(&ran.folder, &["export", "-f", "parquet", "-o", &tables.display().to_string()]);
    let find = format!("find '{}' -path '*/samples/*' -name samples.parquet -size +3", tables.display());
    let found = run(Command::new("sh").args(["-c", &find]));
    assert_eq!(found.out.lines().count(), 1, "{}", found.err);
    // Names lie in a dictionary of the file, compressed or not: the schema is text.
    let file = Path::new(found.out.trim());
    assert!(has(file, "source_function") && has(file, "in_call"), "{}", found.out);
}

#[test]
fn threads_that_come_and_go_and_children_are_sampled() {
    or_skip!();
    for mode in ["threads", "child"] {
        let ran = ran(&["-O2", "-fomit-frame-pointer"], mode);
        is_hot(&json(&ran.folder, &["tally", "--json"]));
        let printed = said(&ran.folder, &["print"]);
        let of = |line: &&str| line.contains(" on CPU ") && line.ends_with(" in hot");
        let mut who: Vec<&str> =
            printed.lines().filter(of).filter_map(|line| line.split(' ').nth(1)).collect();
        who.sort_unstable();
        who.dedup();
        assert_eq!(who.len(), if mode == "threads" { 3 } else { 1 }, "{who:?}");
    }
}

#[test]
fn all_reports_show_them() {
    or_skip!();
    let ran = ran(&["-O2", "-fomit-frame-pointer"], "work");
    let tables = said(&ran.folder, &["tally"]);
    assert!(tables.contains("Time on CPUs | ") && tables.contains("hot (samples.c)"), "{tables}");
    for weight in ["time", "cpu"] {
        let folded = said(&ran.folder, &["export", "-f", "folded", "--weight", weight, "-o", "-"]);
        let line = folded.lines().find(|line| line.contains(";hot (samples.c:"));
        let line = line.unwrap_or_else(|| panic!("{folded}"));
        let (main, work) = (line.find(";main (samples.c:"), line.find(";work (samples.c:"));
        assert!(main.is_some() && main < work, "{line}");
    }
    let flame = said(&ran.folder, &["export", "-f", "flame", "--weight", "cpu", "-o", "-"]);
    assert!(flame.contains("<svg") && flame.contains("hot (samples.c:"));
    // Other readers see the events, each as many as the manifest says.
    let trace = Trace::open(&ran.folder).expect("a trace");
    let mut samples = 0;
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            samples += u64::from(event.expect("no damage").class().name == "cpu:sample");
        }
    }
    let manifest = std::fs::read(ran.folder.join("hetrace/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["samples"]["samples"], samples);
    assert!(samples > 0 && manifest["samples"]["refused"].is_null(), "{manifest}");
    let checked = run(Command::new(hetrace()).arg("check").arg(&ran.folder));
    assert_eq!(checked.status, 0, "{}{}", checked.out, checked.err);
    if let Ok(other) = Command::new("babeltrace2").arg(&ran.folder).output() {
        let text = String::from_utf8_lossy(&other.stdout);
        let shown = text.lines().filter(|line| line.contains("cpu:sample:")).count() as u64;
        assert_eq!(shown, samples, "{}", String::from_utf8_lossy(&other.stderr));
    }
    // A part of the trace has those of its time, and their names.
    let part = ran.scratch.path().join("part");
    let done = run(Command::new(hetrace())
        .arg("trim")
        .arg(&ran.folder)
        .arg("-o")
        .arg(&part)
        .args(["--from", "0.1"]));
    assert_eq!(done.status, 0, "{}", done.err);
    is_hot(&json(&part, &["tally", "--json"]));
}

#[test]
fn time_in_system_calls_is_seen_by_who_may() {
    or_skip!();
    let ran = ran(&["-O2"], "system");
    let tables = json(&ran.folder, &["tally", "--json"]);
    let kernel = number(&tables["sampled"]["kernel_ns"]);
    let manifest = std::fs::read_to_string(ran.folder.join("hetrace/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    if manifest["samples"]["kernel"] == true {
        assert!(kernel > 0, "{tables}");
        let calls = row(&tables, "calls");
        let all = number(&tables["sampled"]["outside_ns"]) + number(&tables["sampled"]["inside_ns"]);
        assert!(number(&calls["total_ns"]) * 2 > all, "{tables}");
    } else {
        assert_eq!(kernel, 0);
        assert!(ran.done.err.contains("not of system calls"), "{}", ran.done.err);
    }
}

#[test]
fn parts_of_a_long_run_have_their_samples() {
    or_skip!();
    // Three threads, one after the other, that take 0.4 s on a CPU each.
    let options = ["--cpu-sample", "997", "--rotate-every", "1s"];
    let ran = ran_under(&[], &["-O2"], &options, "threads");
    // Which part has them depends on how long the program takes to start.
    let parts = std::fs::read_dir(&ran.folder).expect("a folder").flatten().map(|entry| entry.path());
    let later = parts.filter(|path| path.file_name().is_some_and(|name| name != "0001") && path.is_dir());
    let tables = later.map(|part| said(&part, &["tally"]));
    assert!(tables.into_iter().any(|tables| tables.contains("hot (samples.c)")), "no later part has a name");
    is_hot(&json(&ran.folder, &["tally", "--json"]));
}

/// Forbids `perf_event_open`, and runs the rest of its command line.
const FORBIDDING: &str = r#"
import ctypes, os, struct, sys
# A filter of system calls: x86-64's number 298 fails with EPERM, all else is allowed.
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
filters = b"".join(struct.pack("HBBI", *one) for one in code)
room = ctypes.create_string_buffer(filters)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(code), ctypes.addressof(room)))) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn where_the_system_forbids_it_the_run_goes_on_and_says_so() {
    let scratch = TempDir::new().expect("a scratch folder");
    let script = scratch.path().join("forbid.py");
    std::fs::write(&script, FORBIDDING).expect("a script");
    let before = ["python3", script.to_str().expect("a path")];
    let ran = ran_under(&before, &["-O2"], &["--cpu-sample", "997"], "work");
    let says = "no samples of processors (--cpu-sample): perf_event_open is forbidden here";
    assert!(ran.done.err.contains(says) && ran.done.err.contains("For more: "), "{}", ran.done.err);
    let tables = json(&ran.folder, &["tally", "--json"]);
    assert_eq!(tables["sampled"]["samples"], 0, "{tables}");
    assert!(tables["host"].to_string().contains("clGetPlatformIDs"), "calls are recorded: {tables}");
}
