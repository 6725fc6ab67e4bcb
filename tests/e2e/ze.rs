//! Level Zero: what its functions return to programs, and what of their calls is recorded. The programs of
//! `tests/programs/ze` call the real loader; behind it stands a driver without a device, which `fake_ze.c` and the
//! model make. So loader, ways in and records are real, and devices are not.

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::fake_ze::programs;
use hetrace_tests::{Done, counts, hetrace};
use tempfile::TempDir;

/// A line of environment and program.
#[derive(Clone)]
struct Way {
    line: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Way {
    fn new(folder: &Path, line: &[&str]) -> Way {
        let mut line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        line[0] = folder.join(&line[0]).display().to_string();
        let driver = folder.join("libze_fake.so").display().to_string();
        Way { line, variables: vec![("ZE_ENABLE_ALT_DRIVERS", driver.clone()), ("FAKE_ZE", driver)] }
    }

    fn with(mut self, name: &'static str, value: &str) -> Way {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    fn bare(&self) -> Done {
        run(Command::new(&self.line[0]).args(&self.line[1..]).envs(self.variables.clone()))
    }

    fn traced(&self, options: &[&str]) -> Ran {
        let scratch = tempfile::tempdir().expect("scratch");
        let folder = scratch.path().join("trace");
        let mut command = Command::new(hetrace());
        command.args(["run", "-q", "--buffer", "8192"]).args(options).arg("-o").arg(&folder);
        let done = run(command.arg("--").args(&self.line).envs(self.variables.clone()));
        Ran { done, folder, _scratch: scratch }
    }
}

struct Ran {
    done: Done,
    folder: PathBuf,
    _scratch: TempDir,
}

impl Ran {
    fn report(&self, arguments: &[&str]) -> String {
        let (command, options) = arguments.split_first().expect("a command");
        let done = run(Command::new(hetrace()).arg(command).arg(&self.folder).args(options));
        assert_eq!(done.status, 0, "{arguments:?}: {}", done.err);
        done.out
    }

    /// The calls as `print` shows them, without their times.
    fn calls(&self) -> Vec<String> {
        let text = self.report(&["print", "-c"]);
        text.lines().filter_map(|l| Some(l.get(l.find(" ze")? + 1..)?.to_owned())).collect()
    }
}

/// What differs between two runs: where drivers' objects lie.
fn same(bare: &Done, traced: &Done) {
    assert_eq!((traced.status, &traced.out), (bare.status, &bare.out), "{}", traced.err);
}

/// All ways in which a program comes to the functions.
fn ways(folder: &Path, part: &str) -> Vec<Way> {
    let lines = [["work", "linked", part], ["work", "late", part], ["late", "late", part], ["late", "tables", part]];
    lines.iter().map(|line| Way::new(folder, line)).collect()
}

#[test]
fn calls_return_what_they_return_and_are_recorded_once() {
    let Some(folder) = programs() else { return };
    for part in ["commands", "queries", "threads"] {
        for way in ways(folder, part) {
            let bare = way.bare();
            assert!(bare.status == 7 && bare.out.ends_with("\ncompared\n"), "{:?}: {}", way.line, bare.out);
            assert!(!bare.out.contains("the driver has"), "{:?}: {}", way.line, bare.out);
            let ran = way.traced(&[]);
            same(&bare, &ran.done);
            counts::complete(&ran.folder, &ran.done.out).unwrap_or_else(|e| panic!("{:?}: {e}", way.line));
        }
    }
}
