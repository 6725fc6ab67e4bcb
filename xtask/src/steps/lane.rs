//! Where a step's programs print, and how nice they are.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::Outcome;
use crate::repo;

/// How much nicer than others the programs of the second lane are.
const NICE: &str = "10";

/// What a shell may have of an installed hetrace (`hetrace env`, `HETRACE_LIBRARIES`): tests are of the one built here.
const INSTALLED: [&str; 7] = [
    "HETRACE_LIBRARIES",
    "HETRACE_SESSION",
    "HETRACE_MARKS",
    "OPENCL_LAYERS",
    "NVTX_INJECTION64_PATH",
    "INTEL_LIBITTNOTIFY64",
    "OMP_TOOL_LIBRARIES",
];

/// The first lane, which prints to the terminal, or the second, which prints into this file.
pub struct Lane(Option<File>);

impl Lane {
    /// The first lane.
    pub const FRONT: Lane = Lane(None);

    /// Does a step's work in the second lane, and shows what it printed.
    pub(super) fn behind(name: &str, work: impl FnOnce(&Lane) -> Result<Outcome>) -> Result<Outcome> {
        let file = tempfile::tempfile().context("a file for what a step prints")?;
        let mut printed = file.try_clone()?;
        let outcome = work(&Lane(Some(file)));
        let mut text = Vec::new();
        printed.rewind()?;
        printed.read_to_end(&mut text)?;
        let mut out = io::stdout().lock();
        writeln!(out, "==> {name} has ended; it printed:")?;
        out.write_all(&text)?;
        outcome
    }

    /// Runs one `cargo` command with additional variables.
    pub fn cargo(&self, arguments: &[impl AsRef<str>], environment: &[(&str, &str)]) -> Result<Outcome> {
        let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        let mut command = Command::new("cargo");
        INSTALLED.iter().for_each(|name| _ = command.env_remove(name));
        command.args(&arguments).envs(environment.iter().copied());
        self.status(command.current_dir(repo::root()))
    }

    /// Runs a command; a status other than 0 is a failure.
    pub fn status(&self, command: &mut Command) -> Result<Outcome> {
        let shown = format!("    {command:?}");
        let status = if let Some(file) = &self.0 {
            writeln!(&*file, "{shown}")?;
            let mut command = nicer(command);
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?).status()?
        } else {
            println!("{shown}");
            command.status()?
        };
        Ok(if status.success() { Outcome::Passed } else { Outcome::Failed(status.to_string()) })
    }
}

/// The same program, arguments, variables and folder, by `nice`.
fn nicer(command: &Command) -> Command {
    let mut nicer = Command::new("nice");
    nicer.args(["-n", NICE]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nicer.env(name, value),
            None => nicer.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        nicer.current_dir(folder);
    }
    nicer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_programs_that_are_missing_are_failures() {
        let passes = |program: &str| Lane::FRONT.status(&mut Command::new(program));
        assert_eq!(passes("true").ok(), Some(Outcome::Passed));
        assert_eq!(passes("false").ok(), Some(Outcome::Failed("exit status: 1".to_owned())));
        assert!(passes("no-such-program-here").is_err());
    }

    #[test]
    fn the_second_lane_runs_the_same_command_and_keeps_what_it_prints() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = String::new();
        let outcome = Lane::behind("a step", |lane| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo $A $B $(nice) $PWD; exit 3"]).env("A", "a").env_remove("B");
            let outcome = lane.status(command.current_dir(folder.path()));
            let mut file = lane.0.as_ref().unwrap();
            file.rewind().unwrap();
            file.read_to_string(&mut kept).unwrap();
            outcome
        });
        assert_eq!(outcome.unwrap(), Outcome::Failed("exit status: 3".to_owned()));
        let own: i32 =
            String::from_utf8(Command::new("nice").output().unwrap().stdout).unwrap().trim().parse().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let line = format!("a {} {}", (own + 10).min(19), real.display());
        assert_eq!(kept.lines().last(), Some(line.as_str()), "{kept}");
    }
}
