//! How programs reach CUDA: linked, by name, through the driver itself, with
//! several runtimes in one process. The libraries are fakes that count their own
//! calls (`tests/programs/fake_entry`), so no GPU is needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Trace;
use hetrace_tests::bed::run;
use hetrace_tests::{Done, Expected, Seen, hetrace};
use tempfile::TempDir;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/fake_entry")
}

/// The folder with the fakes and the programs.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-programs/entry");
        let make = run(Command::new("make")
            .arg("-s")
            .arg("-C")
            .arg(sources())
            .arg(format!("OUT={}", out.display())));
        assert_eq!(make.status, 0, "{}", make.err);
        out.canonicalize().expect("the folder")
    })
}

/// A program of this test, its arguments, and its environment.
fn command(line: &[&str]) -> (Vec<String>, &'static Path) {
    let folder = built();
    let mut line: Vec<String> = line
        .iter()
        .map(|w| if *w == "FOLDER" { folder.display().to_string() } else { (*w).to_owned() })
        .collect();
    let script = sources().join(&line[0]);
    if script.exists() && line[0].ends_with(".py") {
        line[0] = script.display().to_string();
    } else {
        line[0] = folder.join(&line[0]).display().to_string();
    }
    (line, folder)
}

fn bare(line: &[&str]) -> Done {
    let (line, folder) = command(line);
    run(Command::new(&line[0]).args(&line[1..]).env("LD_LIBRARY_PATH", folder))
}

/// Calls of functions that the model does not have, by name.
fn unknown_calls(trace: &Path) -> BTreeMap<String, u64> {
    let trace = Trace::open(trace).expect("a trace that opens");
    let mut calls = BTreeMap::new();
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let event = event.expect("an event");
            if event.class().name.ends_with(":unknown")
                && let Some(Scalar::Str(name)) = event.get("name")
            {
                *calls.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    calls
}

/// Runs a program bare and under trace: it must end well both times, and the
/// trace must have what the libraries have counted.
fn check_with(line: &[&str], variables: &[(&str, &str)]) -> Done {
    let first = bare(line);
    assert_eq!(first.status, 0, "{line:?} bare: {}", first.err);
    let scratch = TempDir::new().expect("a scratch folder");
    let trace = scratch.path().join("trace");
    let (words, folder) = command(line);
    let mut launcher = Command::new(hetrace());
    launcher
        .args(["run", "--interpose", "preload", "--buffer", "8192", "-o"])
        .arg(&trace)
        .arg("--")
        .args(&words);
    let done = run(launcher.env("LD_LIBRARY_PATH", folder).envs(variables.iter().copied()));
    assert_eq!(done.status, 0, "{line:?}: {}{}", done.out, done.err);
    let seen = Seen::read(&trace);
    assert!(seen.damage.is_empty() && seen.discarded == 0, "{line:?}: {:?}", seen.damage);
    let unknown = done.out.replace("EXPECT ", "KNOWN ").replace("UNKNOWN ", "EXPECT ");
    assert_eq!(seen.total(), Expected::parse(&done.out).total(), "{line:?}");
    assert_eq!(unknown_calls(&trace), Expected::parse(&unknown).total(), "{line:?}");
    done
}

fn check(line: &[&str]) {
    check_with(line, &[]);
}

#[test]
fn a_linked_program_is_traced() {
    check(&["linked"]);
}

#[test]
fn constructors_may_be_quicker_than_ours() {
    check(&["early"]);
}

#[test]
fn other_interposers_keep_their_place() {
    let other = built().join("interposer.so").display().to_string();
    // 20 of the program's own calls of two functions; the runtime's go through
    // the driver.
    let done = check_with(&["linked"], &[("LD_PRELOAD", &other)]);
    assert!(done.out.contains("20 calls passed on"), "{}", done.out);
    // Alone it counts the same.
    let (words, folder) = command(&["linked"]);
    let without = run(Command::new(&words[0]).env("LD_LIBRARY_PATH", folder).env("LD_PRELOAD", &other));
    assert_eq!(without.out, done.out);
}

#[test]
fn a_library_found_at_run_time_is_traced() {
    check(&["found", "dlsym"]);
    check(&["found", "default"]);
}

#[test]
fn what_the_driver_hands_out_is_traced_whether_known_or_not() {
    check(&["found", "address"]);
}

#[test]
fn python_is_traced() {
    check(&["found.py", "FOLDER"]);
}

#[test]
fn each_call_reaches_the_runtime_that_it_means() {
    check(&["copies", "FOLDER", "plugins"]);
    check(&["copies", "FOLDER", "dlsym"]);
    check(&["copies", "FOLDER", "mixed"]);
}

#[test]
fn a_plug_in_that_takes_the_place_of_a_closed_one_reaches_its_own_runtime() {
    check(&["copies", "FOLDER", "reopened"]);
}

#[test]
fn finding_the_runtime_that_a_call_means_takes_little_stack() {
    check(&["copies", "FOLDER", "coroutine"]);
}

#[test]
fn a_handler_reaches_its_own_runtime_whatever_call_it_interrupts() {
    let scratch = TempDir::new().expect("a scratch folder");
    let (words, folder) = command(&["copies", "FOLDER", "handlers"]);
    let mut launcher = Command::new(hetrace());
    launcher.args(["run", "--interpose", "preload", "-o"]).arg(scratch.path().join("trace"));
    let done = run(launcher.arg("--").args(&words).env("LD_LIBRARY_PATH", folder));
    assert_eq!(done.status, 0, "{}", done.err);
}

#[test]
fn another_runtime_may_come_while_one_is_used() {
    for _ in 0..5 {
        check(&["copies", "FOLDER", "threads"]);
    }
}

#[test]
fn binding_at_once_or_when_needed_makes_no_difference() {
    for line in [&["linked"][..], &["found", "default"], &["copies", "FOLDER", "mixed"]] {
        check_with(line, &[("LD_BIND_NOW", "1")]);
    }
}

#[test]
fn what_is_not_there_stays_away() {
    let without = bare(&["weak"]);
    assert_eq!(check_with(&["weak"], &[]).out, without.out);
}

#[test]
fn without_a_session_nothing_changes() {
    let libraries: Vec<String> = ["cuda", "cudart", "nccl"]
        .iter()
        .map(|api| hetrace().with_file_name(format!("libhetrace_{api}.so")).display().to_string())
        .collect();
    for line in [&["linked"][..], &["found", "dlsym"], &["copies", "FOLDER", "mixed"]] {
        let (words, folder) = command(line);
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]).env("LD_LIBRARY_PATH", folder).env("LD_PRELOAD", libraries.join(":"));
        let done = run(&mut program);
        assert_eq!((done.status, &done.out), (0, &bare(line).out), "{line:?}: {}", done.err);
    }
}
