//! ITT: what its functions return to programs, and what of their tasks, regions, frames, counters and names is
//! recorded. `tests/programs/itt_calls.py` calls all of them by a real static part of ITT: that inside Intel's module
//! for Python, which `scripts/install-deps.sh` brings.

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, hetrace};
use serde_json::Value;

/// The Python that has the module. Without one the test ends there, and says so.
fn python() -> Option<PathBuf> {
    let installed = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/python/bin/python"));
    let python = std::env::var_os("HETRACE_PYTHON").map_or_else(|| installed.to_owned(), PathBuf::from);
    let has = Command::new(&python).args(["-c", "import ittapi"]).output().is_ok_and(|done| done.status.success());
    if !has {
        eprintln!("not tested: {} has no module ittapi (scripts/install-deps.sh)", python.display());
    }
    has.then_some(python)
}

/// A part of the program, or all of it, under `hetrace run` with these options.
struct Ran {
    done: Done,
    folder: PathBuf,
    _scratch: tempfile::TempDir,
}

fn traced(options: &[&str], part: &[&str]) -> Option<Ran> {
    let python = python()?;
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q"]).args(options).arg("-o").arg(&folder).arg("--").arg(python);
    let done = run(line.arg(program("itt_calls.py")).args(part).env_remove("INTEL_LIBITTNOTIFY64"));
    assert_eq!(done.status, 0, "{}", done.err);
    Some(Ran { done, folder, _scratch: scratch })
}

impl Ran {
    fn report(&self, arguments: &[&str]) -> String {
        let (command, options) = arguments.split_first().expect("a command");
        let done = run(Command::new(hetrace()).arg(command).arg(&self.folder).args(options));
        assert_eq!(done.status, 0, "{}", done.err);
        done.out
    }

    /// The calls as `print` shows them, without their times.
    fn calls(&self) -> Vec<String> {
        let text = self.report(&["print", "-c"]);
        text.lines().filter_map(|l| Some(l.get(l.find("__itt_")?..)?.to_owned())).collect()
    }

    /// Rows of a table of the tally.
    fn rows(&self, table: &str) -> Vec<Value> {
        let tally: Value = serde_json::from_str(&self.report(&["tally", "--json"])).expect("JSON");
        tally[table].as_array().unwrap_or_else(|| panic!("{table} in {tally}")).clone()
    }

    /// `DOMAIN NAME CALLS` of all ranges, sorted.
    fn ranges(&self) -> Vec<String> {
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let line = |row: &Value| format!("{} {} {}", text(row, "domain"), text(row, "name"), row["calls"]);
        let mut lines: Vec<String> = self.rows("ranges").iter().map(line).collect();
        lines.sort();
        lines
    }
}

#[test]
fn dump() {
    let Some(ran) = traced(&[], &[]) else { return };
    println!("{}\n{}", ran.done.out, ran.done.err);
    println!("{}", ran.report(&["print", "-c"]));
    println!("{}", ran.report(&["tally"]));
    println!("{:?}", ran.ranges());
    println!("{:?}", ran.calls());
}
