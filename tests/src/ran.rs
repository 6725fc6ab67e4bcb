//! A program under trace, beside a run of it without.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::bed::run;
use crate::{Done, hetrace, reports};

/// Both runs: they printed the same and ended alike.
pub struct Ran {
    /// Without.
    pub bare: Done,
    /// Under trace.
    pub done: Done,
    /// The trace.
    pub folder: PathBuf,
    /// Where that lies.
    pub scratch: TempDir,
}

impl Ran {
    /// Runs a program with its arguments; `options` are those of `run`, and both runs have the variables.
    pub fn new(options: &[&str], program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
        let scratch = tempfile::tempdir().expect("scratch");
        let folder = scratch.path().join("trace");
        let with = |command: &mut Command| run(command.envs(environment.iter().copied()));
        let bare = with(Command::new(program).args(arguments));
        let mut traced = Command::new(hetrace());
        traced.args(["run", "-q", "--buffer", "8192"]).args(options).arg("-o").arg(&folder);
        let done = with(traced.arg("--").arg(program).args(arguments));
        let (said, expected) = ((&done.out, done.status), (&bare.out, bare.status));
        assert_eq!(said, expected, "{} {arguments:?}: {}", program.display(), done.err);
        Ran { bare, done, folder, scratch }
    }

    /// What a command prints of the trace.
    pub fn report(&self, arguments: &[&str]) -> String {
        reports::report(&self.folder, arguments)
    }

    /// The same of one whose status says what it found.
    pub fn findings(&self, arguments: &[&str]) -> String {
        reports::findings(&self.folder, arguments)
    }

    /// `tally --json`.
    pub fn tally(&self) -> Value {
        reports::tally(&self.folder)
    }

    /// Calls by function, as they are in the trace; failed ones, too.
    pub fn recorded(&self) -> BTreeMap<String, u64> {
        reports::recorded(&self.tally())
    }

    /// The same of the functions whose names begin so.
    pub fn recorded_of(&self, begin: &str) -> BTreeMap<String, u64> {
        self.recorded().into_iter().filter(|(name, _)| name.starts_with(begin)).collect()
    }

    /// Calls by function, as the program has counted them.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        reports::counted(&self.bare.out)
    }

    /// Failures by function, as `tally` names them.
    pub fn errors(&self) -> BTreeMap<String, String> {
        let tally = self.tally();
        let rows = tally["errors"].as_array().expect("errors").iter();
        let text = |row: &Value, key: &str| row[key].as_str().map(str::to_owned);
        rows.filter_map(|row| Some((text(row, "name")?, text(row, "error")?))).collect()
    }

    /// Whether `print` shows calls with these texts, in this order; `…` stands for anything.
    pub fn expect_calls(&self, expected: &[&str]) {
        reports::expect_lines(&self.report(&["print", "-c"]), expected);
    }
}
