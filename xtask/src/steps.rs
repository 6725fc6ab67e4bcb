//! Steps that are all run, whatever becomes of the others, and the summary of them.
//!
//! A step runs unless one that it needs did not pass. What a machine lacks makes a step skipped, and
//! those that need it; the summary shows that, and it is no failure.

use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::repo;

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ran and found nothing.
    Passed,
    /// It ran and found something, or could not be run.
    Failed(String),
    /// The machine lacks something that it needs.
    Skipped(String),
    /// The step of this name, which it needs, failed.
    NotRun(String),
}

impl Outcome {
    /// Whether all steps together have failed with this.
    fn is_failure(&self) -> bool {
        matches!(self, Outcome::Failed(_) | Outcome::NotRun(_))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => f.write_str("ok"),
            Outcome::Failed(why) => write!(f, "FAILED   {why}"),
            Outcome::Skipped(why) => write!(f, "skipped  {why}"),
            Outcome::NotRun(needed) => write!(f, "NOT RUN  {needed}: failed"),
        }
    }
}

/// One check.
pub struct Step<'s> {
    name: String,
    needs: Option<String>,
    work: Box<dyn FnOnce() -> Result<Outcome> + 's>,
}

impl<'s> Step<'s> {
    /// A step of this name. An error of `work` is a failure of the step.
    pub fn new(name: impl Into<String>, work: impl FnOnce() -> Result<Outcome> + 's) -> Self {
        Step { name: name.into(), needs: None, work: Box::new(work) }
    }

    /// A step that is one `cargo` command.
    pub fn cargo(name: impl Into<String>, arguments: &[impl AsRef<str>]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|a| a.as_ref().to_owned()).collect();
        Step::new(name, move || cargo(&arguments, &[]))
    }

    /// The same step, to be run only if the step of this name has passed.
    #[must_use]
    pub fn after(self, needs: impl Into<String>) -> Self {
        Step { needs: Some(needs.into()), ..self }
    }
}

/// What became of all steps.
#[derive(Debug, Default)]
pub struct Summary {
    rows: Vec<(String, Outcome, Duration)>,
}

impl Summary {
    /// Whether any step failed, or was not run because another failed.
    pub fn failed(&self) -> bool {
        self.rows.iter().any(|(_, outcome, _)| outcome.is_failure())
    }

    /// Whether there was no step.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Why a step cannot be run that needs this one, if it cannot.
    fn prevents(&self, needed: &str) -> Option<Outcome> {
        match self.rows.iter().find(|(name, ..)| name == needed).map(|(_, outcome, _)| outcome) {
            Some(Outcome::Passed) => None,
            Some(Outcome::Skipped(why)) => Some(Outcome::Skipped(why.clone())),
            _ => Some(Outcome::NotRun(needed.to_owned())),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        for (name, outcome, time) in &self.rows {
            writeln!(f, "{name:width$}  {:>5} s  {outcome}", time.as_secs())?;
        }
        let failures = self.rows.iter().filter(|(_, outcome, _)| outcome.is_failure()).count();
        let total: Duration = self.rows.iter().map(|(.., time)| time).sum();
        write!(f, "{} steps, {failures} failed, {} s", self.rows.len(), total.as_secs())
    }
}

/// Runs all steps whose names contain `only`, and those that they need, in this order.
pub fn run_all(steps: Vec<Step<'_>>, only: &str) -> Summary {
    let mut summary = Summary::default();
    let needed: Vec<String> =
        steps.iter().filter(|s| s.name.contains(only)).filter_map(|s| s.needs.clone()).collect();
    for step in steps {
        if !step.name.contains(only) && !needed.contains(&step.name) {
            continue;
        }
        println!("==> {}", step.name);
        let begin = Instant::now();
        let outcome = step.needs.and_then(|needed| summary.prevents(&needed));
        let outcome = outcome
            .unwrap_or_else(|| (step.work)().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}"))));
        if outcome != Outcome::Passed {
            println!("==> {}: {outcome}", step.name);
        }
        summary.rows.push((step.name, outcome, begin.elapsed()));
    }
    summary
}

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

/// Runs one `cargo` command with additional variables.
pub fn cargo(arguments: &[impl AsRef<str>], environment: &[(&str, &str)]) -> Result<Outcome> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let mut command = Command::new("cargo");
    INSTALLED.iter().for_each(|name| _ = command.env_remove(name));
    command.args(&arguments).envs(environment.iter().copied());
    status(command.current_dir(repo::root()))
}

/// Runs a command; a status other than 0 is a failure.
pub fn status(command: &mut Command) -> Result<Outcome> {
    println!("    {command:?}");
    let status = command.status()?;
    Ok(if status.success() { Outcome::Passed } else { Outcome::Failed(status.to_string()) })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use anyhow::bail;

    use super::*;

    fn failed() -> Outcome {
        Outcome::Failed("exit status: 1".to_owned())
    }

    #[test]
    fn a_failure_keeps_nothing_else_from_running() {
        let ran = RefCell::new(Vec::new());
        let step = |name: &'static str, outcome: Outcome| {
            let ran = &ran;
            Step::new(name, move || {
                ran.borrow_mut().push(name);
                Ok(outcome)
            })
        };
        let steps = vec![
            step("first", failed()),
            Step::new("error", || bail!("no such program")),
            step("build", Outcome::Passed),
            step("last", Outcome::Passed).after("build"),
        ];
        let summary = run_all(steps, "");
        assert_eq!(*ran.borrow(), ["first", "build", "last"]);
        assert!(summary.failed());
        let text = summary.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "first      0 s  FAILED   exit status: 1");
        assert_eq!(lines[1], "error      0 s  FAILED   no such program");
        assert_eq!(lines[3], "last       0 s  ok");
        assert_eq!(lines[4], "4 steps, 2 failed, 0 s");
    }

    #[test]
    fn what_needs_a_step_that_did_not_pass_is_not_run() {
        let skipped = Outcome::Skipped("no compiler".to_owned());
        for (outcome, fails, shown) in
            [(failed(), true, "NOT RUN  build: failed"), (skipped, false, "skipped  no compiler")]
        {
            let steps = vec![
                Step::new("build", || Ok(outcome.clone())),
                Step::new("tests", || panic!("it must not run")).after("build"),
            ];
            let summary = run_all(steps, "");
            assert_eq!(summary.failed(), fails, "{summary}");
            let text = summary.to_string();
            assert_eq!(text.lines().nth(1), Some(format!("tests      0 s  {shown}").as_str()));
        }
    }

    #[test]
    fn what_the_machine_lacks_is_shown_and_no_failure() {
        let summary =
            run_all(vec![Step::new("valgrind", || Ok(Outcome::Skipped("not installed".to_owned())))], "");
        assert!(!summary.failed());
        assert!(summary.to_string().starts_with("valgrind      0 s  skipped  not installed\n"), "{summary}");
    }

    #[test]
    fn chosen_steps_bring_what_they_need() {
        let ran = RefCell::new(Vec::new());
        let step = |name: &'static str| {
            let ran = &ran;
            Step::new(name, move || {
                ran.borrow_mut().push(name);
                Ok(Outcome::Passed)
            })
        };
        let steps = vec![step("lints"), step("build"), step("end-to-end tests").after("build"), step("fuzz")];
        assert!(!run_all(steps, "end-to-end").failed());
        assert_eq!(*ran.borrow(), ["build", "end-to-end tests"]);
    }

    #[test]
    fn statuses_and_programs_that_are_missing_are_failures() {
        let passes = |program: &str| status(&mut Command::new(program));
        assert_eq!(passes("true").ok(), Some(Outcome::Passed));
        assert_eq!(passes("false").ok(), Some(failed()));
        assert!(passes("no-such-program-here").is_err());
    }
}
