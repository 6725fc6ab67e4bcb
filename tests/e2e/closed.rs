//! Programs that can't come to an API have the gate in place of the APIs' libraries, and what they start has all that it
//! needs, in whatever way they start it.

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, fake, hetrace};
use tempfile::TempDir;

/// Ways that the gate sees, and those that it does not.
const SEEN: &[&str] = &[
    "execve",
    "execv",
    "execvp",
    "execvpe",
    "posix_spawn",
    "posix_spawnp",
    "vfork",
    "many",
    "system",
    "popen",
];
const UNSEEN: &[&str] = &["execlp", "call", "too-many"];

/// Runs a command line under trace, on the fake driver and runtime.
fn traced(scratch: &TempDir, variables: &[(&str, &Path)], line: &[&str]) -> (Done, PathBuf) {
    let trace = scratch.path().join("trace");
    let _ = std::fs::remove_dir_all(&trace);
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "--device-times", "off", "-o"]).arg(&trace).arg("--").args(line);
    command.env("LD_LIBRARY_PATH", fake::with_runtime()).envs(variables.iter().copied());
    let done = run(&mut command);
    assert_eq!(done.status, 0, "{line:?}: {}", done.err);
    (done, trace)
}

/// How many of our libraries are among what is mapped: those of APIs, and the gate.
fn mapped(maps: &str) -> (usize, usize) {
    let of = |name: &str| {
        let lines = maps.lines().filter(|line| line.contains(name) && line.contains(" r-xp "));
        lines.count()
    };
    (of("/libhetrace_"), of("/libhetgate.so"))
}

fn starter() -> String {
    program("starter").display().to_string()
}

#[test]
fn a_closed_program_has_the_gate_alone() {
    let scratch = TempDir::new().expect("scratch");
    let maps = |variables: &[(&str, &Path)], line: &[&str]| mapped(&traced(&scratch, variables, line).0.out);
    assert_eq!(maps(&[], &["cat", "/proc/self/maps"]), (0, 1));
    let (apis, gates) = maps(&[], &["python3", "-c", "print(open('/proc/self/maps').read())"]);
    assert!(apis >= 2 && gates == 1, "{apis} {gates}");
    // What others preload may bring anything.
    let others = program("libfake.so");
    let (apis, gates) = maps(&[("LD_PRELOAD", &others)], &["cat", "/proc/self/maps"]);
    assert!(apis >= 2 && gates == 0, "{apis} {gates}");
    // A launcher in a launcher.
    let (hetrace, inner) =
        (hetrace().display().to_string(), scratch.path().join("inner").display().to_string());
    assert_eq!(maps(&[], &[&hetrace, "run", "-q", "-o", &inner, "--", "cat", "/proc/self/maps"]), (0, 1));
}

#[test]
fn what_a_closed_program_starts_has_what_it_needs() {
    let scratch = TempDir::new().expect("scratch");
    let (starter, layers) = (starter(), fake::program("layers").display().to_string());
    let cat = "/bin/cat";
    for (ways, is_seen) in [(SEEN, true), (UNSEEN, false)] {
        for way in ways {
            let (done, trace) = traced(&scratch, &[], &[&starter, way, &layers]);
            assert!(done.out.contains("result 0"), "{way}: {}", done.out);
            let printed = run(Command::new(hetrace()).arg("print").arg(&trace)).out;
            let calls = |name: &str| printed.lines().filter(|line| line.contains(name)).count();
            assert!(calls("cuInit") >= 1 && calls("cudaLaunchKernel") >= 30, "{way}: {printed}");
            let (apis, gates) =
                mapped(&traced(&scratch, &[], &[&starter, way, cat, "/proc/self/maps"]).0.out);
            assert_eq!(gates, 1, "{way}");
            assert_eq!(apis == 0, is_seen, "{way}: {apis} libraries");
        }
    }
}

#[test]
fn the_environment_names_all_libraries_everywhere() {
    let scratch = TempDir::new().expect("scratch");
    let list = |line: &[&str]| {
        let out = traced(&scratch, &[], line).0.out;
        let found = out.lines().find(|line| line.starts_with("LD_PRELOAD="));
        let found = found.unwrap_or_else(|| panic!("{line:?}: {out}")).to_owned();
        assert!(
            found.contains("libhetrace_cuda.so:") && found.ends_with("libhetgate.so"),
            "{line:?}: {found}"
        );
        found
    };
    let expected = list(&["env"]);
    for way in SEEN.iter().chain(UNSEEN) {
        assert_eq!(list(&[&starter(), way, "/usr/bin/env"]), expected, "{way}");
    }
    assert_eq!(list(&["sh", "-c", "env"]), expected);
    assert_eq!(
        list(&["python3", "-c", "import os; print('LD_PRELOAD=' + os.environ['LD_PRELOAD'])"]),
        expected
    );
}

/// What can't be started fails as it does without us, and what is found by name is found as it is without us.
#[test]
fn programs_that_are_not_there_fail_as_before() {
    let scratch = TempDir::new().expect("scratch");
    let folder = scratch.path().join("bin");
    std::fs::create_dir(&folder).expect("a folder");
    // Not executable, so that the next folder's is taken.
    std::fs::write(folder.join("env"), "no program").expect("a file");
    let empty = folder.join("empty");
    std::fs::write(&empty, "").expect("a file");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    for way in ["execve", "execv", "execvp", "execvpe", "posix_spawn", "posix_spawnp", "vfork"] {
        for what in ["/absent", "absent-program", &empty.display().to_string(), "env"] {
            let status = |traced: bool| {
                let mut command = Command::new(if traced { hetrace() } else { program("starter") });
                if traced {
                    let trace = scratch.path().join("trace");
                    let _ = std::fs::remove_dir_all(&trace);
                    command.args(["run", "-q", "-o"]).arg(trace).arg("--").arg(program("starter"));
                }
                command.args([way, what]).env("LD_LIBRARY_PATH", fake::with_runtime()).env("PATH", &path);
                run(&mut command).status
            };
            assert_eq!(status(true), status(false), "{way} {what}");
        }
    }
}
