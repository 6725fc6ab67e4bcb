//! Programs built with sanitizers: as without us in all they show, and recorded.
//!
//! The programs are `PROGRAM-COMPILER-SANITIZER-RUNTIME` in `tests/programs/sanitized`; for
//! a compiler or runtime that this machine lacks there is an empty file, and the test says
//! so and passes over it.

#[path = "cuda/run.rs"]
mod cuda;

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::counts::complete;
use hetrace_tests::{Platform, Seen, fake, hetrace, programs};
use tempfile::TempDir;

/// Programs whose name begins like this, if they could be built.
fn built(program: &str) -> Vec<PathBuf> {
    let folder = programs().join("sanitized");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("test programs").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(&format!("{program}-")) {
            continue;
        }
        if entry.metadata().expect("a file").len() == 0 {
            eprintln!("{name} could not be built here: install its compiler to try it");
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    assert!(!found.is_empty(), "gcc has sanitizers: run scripts/install-deps.sh");
    found
}

/// What a run shows: numbers of processes and addresses differ each time, our frames are in
/// stacks, and the last lines are the launcher's.
fn shown(done: &Done) -> (i32, String, String) {
    let lines = done.err.lines().filter(|l| !l.starts_with("hetrace: ") && !l.starts_with("    #"));
    let without_numbers = |line: &str| {
        let kept = |word: &&str| !word.contains("0x") && !word.starts_with("==");
        line.split_whitespace().filter(kept).collect::<Vec<_>>().join(" ")
    };
    // What a sanitizer says of a fault of its own depends on chance.
    let err = if done.status == 23 { String::new() } else { lines.map(without_numbers).collect() };
    (done.status, done.out.clone(), err)
}

struct Runs {
    platform: Vec<(String, String)>,
    scratch: TempDir,
}

impl Runs {
    fn new() -> Runs {
        let scratch = TempDir::new().expect("a scratch folder");
        Runs { platform: Platform::Pocl.environment(scratch.path()), scratch }
    }

    fn bare(&self, line: &[&str]) -> Done {
        run(Command::new(line[0]).args(&line[1..]).envs(self.platform.clone()))
    }

    /// Runs under trace; also returns where the trace is.
    fn traced(&self, way: &str, line: &[&str]) -> (Done, PathBuf) {
        let folder = self.scratch.path().join("trace");
        let _ = std::fs::remove_dir_all(&folder);
        let mut command = Command::new(hetrace());
        command.args(["run", "-q", "--buffer", "8192", "--interpose", way, "-o"]).arg(&folder);
        (run(command.arg("--").args(line).envs(self.platform.clone())), folder)
    }
}

/// Both ways for each program, and what `check` finds wrong with a run.
fn each(program: &str, arguments: &[&str], check: impl Fn(&Done, &Path) -> Result<(), String>) {
    let runs = Runs::new();
    let mut failures = Vec::new();
    for path in built(program) {
        let path = path.display().to_string();
        let line: Vec<&str> = [path.as_str()].iter().chain(arguments).copied().collect();
        let bare = runs.bare(&line);
        for way in ["layer", "preload"] {
            let (done, folder) = runs.traced(way, &line);
            if shown(&done) != shown(&bare) {
                failures.push(format!("{way} {path}:\n{done:?}\n  bare {bare:?}"));
            } else if let Err(what) = check(&bare, &folder) {
                failures.push(format!("{way} {path}: {what}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn sanitized_programs_start_and_end_as_without_us() {
    each("hello", &[], |_, _| Ok(()));
}

#[test]
fn sanitized_programs_are_recorded() {
    each("linked", &["3"], |bare, folder| {
        // MemorySanitizer ends the program for what PoCL does.
        if bare.status == 0 { complete(folder, &bare.out) } else { Ok(()) }
    });
}

/// A constructor runs before ours and calls the API through us, and asks us for functions:
/// perhaps before the sanitizer has started.
#[test]
fn calls_of_constructors_are_recorded_under_sanitizers() {
    each("late", &[], |bare, folder| {
        let calls = Seen::read(folder).total().get("clGetPlatformIDs").copied().unwrap_or(0);
        let as_it_should = bare.status != 0 || calls == 1;
        as_it_should.then_some(()).ok_or_else(|| format!("{calls} calls of clGetPlatformIDs"))
    });
}

/// The launcher sees a shell only.
#[test]
fn children_of_a_shell_are_as_without_us() {
    let runs = Runs::new();
    let all: Vec<String> = built("hello")
        .iter()
        .map(|p| format!("{}; echo $?", p.display()))
        .filter(|line| stable(line))
        .collect();
    let line = ["sh", "-c", &all.join("; ")];
    let bare = runs.bare(&line);
    let (done, _) = runs.traced("preload", &line);
    assert_eq!(shown(&done), shown(&bare));
    assert_eq!(done.out.matches("hello 0\n3\n").count(), all.len(), "{done:?}");
}

/// gcc's static leak checker ends by itself on some machines, without us.
fn stable(line: &str) -> bool {
    !line.contains("gcc-leak-static")
}

/// Its own options stand before ours: the check for the first library is switched off by
/// the launcher, and its own options count.
#[test]
fn a_program_with_options_of_its_own_keeps_them() {
    each("own_options", &[], |_, _| Ok(()));
    let runs = Runs::new();
    let path = built("own_options").first().expect("one").display().to_string();
    let (done, _) = runs.traced("preload", &[&path]);
    assert_eq!((done.status, done.out.as_str()), (3, "hello\n"), "{}", done.err);
}

/// Whether leaks are found, what the status is then: all by the program's own doing.
#[test]
fn users_options_have_the_last_word() {
    let runs = Runs::new();
    let of_asan = |p: &&PathBuf| p.to_string_lossy().contains("gcc-address-shared");
    let path = built("hello").iter().find(of_asan).expect("gcc's").display().to_string();
    let strict = format!("ASAN_OPTIONS=verify_asan_link_order=1 {path}");
    let (done, _) = runs.traced("preload", &["sh", "-c", &strict]);
    assert!(done.status != 3 && done.err.contains("come first"), "{done:?}");
}

/// CUDA's driver, preloaded, with a thread of ours under CUPTI.
#[test]
fn cuda_is_recorded_under_sanitizers() {
    // The fake driver has some of its own.
    let leaks = [("ASAN_OPTIONS", "detect_leaks=0")];
    for sanitizer in ["address", "thread", "undefined"] {
        let path = fake::sanitized("work", sanitizer).display().to_string();
        for (source, mode) in [("auto", "threads"), ("events", "streams"), ("off", "modules")] {
            let bare = run(Command::new(&path)
                .arg(mode)
                .env("LD_LIBRARY_PATH", fake::driver())
                .env("FAKE_CUDA_DEVICES", "2")
                .envs(leaks));
            let run = cuda::run(source, &[&path, mode], &leaks);
            assert_eq!(shown(&run.done), shown(&bare), "{sanitizer} {source} {mode}");
            let seen = run.seen();
            assert!(seen.total().contains_key("cuLaunchKernel"), "{sanitizer} {source} {mode}");
            match source {
                "auto" => cuda::check_all_reported(&run.ops(), &seen, 1000),
                "events" => cuda::check_all_reported(&run.ops(), &seen, run.doubt()),
                _ => {}
            }
        }
    }
}
