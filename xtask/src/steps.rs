//! Steps that are all run, whatever becomes of the others, and the summary of them.
//!
//! A step runs unless one that it needs did not pass. What a machine lacks makes a step skipped, and
//! those that need it; the summary shows that, and it is no failure.
//!
//! Two steps run at a time, each in a lane: compilers end with one thread and tests wait for things, so one lane
//! alone leaves processors idle.

mod lane;

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

pub use lane::Lane;

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

/// What a step does in the lane that it was given.
type Work<'s> = Box<dyn FnOnce(&Lane) -> Result<Outcome> + Send + 's>;

/// One check.
pub struct Step<'s> {
    name: String,
    needs: Option<String>,
    behind: bool,
    work: Work<'s>,
}

impl<'s> Step<'s> {
    /// A step of this name. An error of `work` is a failure of the step.
    pub fn new(name: impl Into<String>, work: impl FnOnce(&Lane) -> Result<Outcome> + Send + 's) -> Self {
        Step { name: name.into(), needs: None, behind: false, work: Box::new(work) }
    }

    /// A step that is one `cargo` command.
    pub fn cargo(name: impl Into<String>, arguments: &[impl AsRef<str>]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|a| a.as_ref().to_owned()).collect();
        Step::new(name, move |lane| lane.cargo(&arguments, &[]))
    }

    /// The same step, to be run only if the step of this name, which stands before it, has passed.
    #[must_use]
    pub fn after(self, needs: impl Into<String>) -> Self {
        Step { needs: Some(needs.into()), ..self }
    }

    /// The same step in the second lane, where it takes what the first one leaves of the processors. What it
    /// prints is shown when it has ended.
    #[must_use]
    pub fn behind(self) -> Self {
        Step { behind: true, ..self }
    }
}

/// A step that was run, or would have been.
#[derive(Debug)]
struct Row {
    name: String,
    /// None before the end.
    outcome: Option<Outcome>,
    time: Duration,
}

/// What became of all steps.
#[derive(Debug, Default)]
pub struct Summary {
    rows: Vec<Row>,
    /// Of all together: less than the sum, as two run at a time.
    time: Duration,
}

impl Summary {
    /// Whether any step failed, or was not run because another failed.
    pub fn failed(&self) -> bool {
        self.failures() > 0
    }

    /// Whether there was no step.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome.as_ref().is_none_or(Outcome::is_failure)).count()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        for Row { name, outcome, time } in &self.rows {
            let outcome = outcome.as_ref().map_or("not ended".to_owned(), Outcome::to_string);
            writeln!(f, "{name:width$}  {:>5} s  {outcome}", time.as_secs())?;
        }
        write!(f, "{} steps, {} failed, {} s", self.rows.len(), self.failures(), self.time.as_secs())
    }
}

/// What both lanes know.
struct Course {
    rows: Mutex<Vec<Row>>,
    /// Signalled when a step has ended.
    ended: Condvar,
}

impl Course {
    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of a step that stands before another; returns why the other cannot be run, if it cannot.
    fn prevents(&self, needed: &str, before: usize) -> Option<Outcome> {
        let mut rows = self.rows();
        loop {
            let row = rows.iter().take(before).find(|row| row.name == needed);
            match row.map(|row| row.outcome.as_ref()) {
                Some(None) => rows = self.ended.wait(rows).unwrap_or_else(PoisonError::into_inner),
                Some(Some(Outcome::Passed)) => return None,
                Some(Some(Outcome::Skipped(why))) => return Some(Outcome::Skipped(why.clone())),
                Some(Some(_)) | None => return Some(Outcome::NotRun(needed.to_owned())),
            }
        }
    }

    /// Runs the steps of one lane. Each lane goes in the order of all steps, and a step needs only such as stand before
    /// it, so that lanes never wait for each other in a circle.
    fn run(&self, lane: Vec<(usize, Step<'_>)>) {
        for (number, step) in lane {
            let prevented = step.needs.as_deref().and_then(|needed| self.prevents(needed, number));
            println!(
                "==> {}{}",
                step.name,
                if step.behind { " begins, and is shown at its end" } else { "" }
            );
            let begin = Instant::now();
            let outcome = prevented.unwrap_or_else(|| {
                let done =
                    if step.behind { Lane::behind(&step.name, step.work) } else { (step.work)(&Lane::FRONT) };
                done.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
            });
            if outcome != Outcome::Passed {
                println!("==> {}: {outcome}", step.name);
            }
            let mut rows = self.rows();
            (rows[number].outcome, rows[number].time) = (Some(outcome), begin.elapsed());
            self.ended.notify_all();
        }
    }
}

/// Runs all steps whose names contain `only`, and those that they need.
pub fn run_all(steps: Vec<Step<'_>>, only: &str) -> Summary {
    let begin = Instant::now();
    let needed: Vec<String> =
        steps.iter().filter(|s| s.name.contains(only)).filter_map(|s| s.needs.clone()).collect();
    let chosen = steps.into_iter().filter(|step| step.name.contains(only) || needed.contains(&step.name));
    let chosen: Vec<(usize, Step<'_>)> = chosen.enumerate().collect();
    let row =
        |(_, step): &(usize, Step<'_>)| Row { name: step.name.clone(), outcome: None, time: Duration::ZERO };
    let course = Course { rows: Mutex::new(chosen.iter().map(row).collect()), ended: Condvar::new() };
    let (behind, front): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|(_, step)| step.behind);
    thread::scope(|scope| {
        scope.spawn(|| course.run(behind));
        course.run(front);
    });
    let rows = course.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    Summary { rows, time: begin.elapsed() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use anyhow::bail;

    use super::*;

    fn failed() -> Outcome {
        Outcome::Failed("exit status: 1".to_owned())
    }

    #[test]
    fn a_failure_keeps_nothing_else_from_running() {
        let ran = Mutex::new(Vec::new());
        let step = |name: &'static str, outcome: Outcome| {
            let ran = &ran;
            Step::new(name, move |_| {
                ran.lock().unwrap().push(name);
                Ok(outcome)
            })
        };
        let steps = vec![
            step("first", failed()),
            Step::new("error", |_| bail!("no such program")),
            step("build", Outcome::Passed),
            step("last", Outcome::Passed).after("build"),
        ];
        let summary = run_all(steps, "");
        assert_eq!(*ran.lock().unwrap(), ["first", "build", "last"]);
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
                Step::new("build", |_| Ok(outcome.clone())),
                Step::new("tests", |_| panic!("it must not run")).after("build"),
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
            run_all(vec![Step::new("valgrind", |_| Ok(Outcome::Skipped("not installed".to_owned())))], "");
        assert!(!summary.failed());
        assert!(summary.to_string().starts_with("valgrind      0 s  skipped  not installed\n"), "{summary}");
    }

    #[test]
    fn chosen_steps_bring_what_they_need() {
        let ran = Mutex::new(Vec::new());
        let step = |name: &'static str| {
            let ran = &ran;
            Step::new(name, move |_| {
                ran.lock().unwrap().push(name);
                Ok(Outcome::Passed)
            })
        };
        let steps = vec![step("lints"), step("build"), step("end-to-end tests").after("build"), step("fuzz")];
        assert!(!run_all(steps, "end-to-end").failed());
        assert_eq!(*ran.lock().unwrap(), ["build", "end-to-end tests"]);
    }

    #[test]
    fn a_step_waits_for_what_it_needs_in_the_other_lane() {
        let (begun, waits) = mpsc::channel();
        let ran = Mutex::new(Vec::new());
        let note = |name: &'static str| ran.lock().unwrap().push(name);
        let steps = vec![
            // It ends only after a step behind it in the order has begun: so they run at a time.
            Step::new("build", move |_| {
                waits.recv().unwrap();
                note("build");
                Ok(Outcome::Passed)
            })
            .behind(),
            Step::new("lints", move |_| {
                note("lints");
                begun.send(()).unwrap();
                Ok(Outcome::Passed)
            }),
            Step::new("end-to-end tests", |_| {
                note("end-to-end tests");
                Ok(Outcome::Passed)
            })
            .after("build"),
        ];
        let summary = run_all(steps, "");
        assert!(!summary.failed(), "{summary}");
        assert_eq!(*ran.lock().unwrap(), ["lints", "build", "end-to-end tests"]);
        let names: Vec<String> =
            summary.to_string().lines().map(|l| l.split("  ").next().unwrap().to_owned()).collect();
        assert_eq!(names[..3], ["build", "lints", "end-to-end tests"], "in the order of the steps");
    }

    #[test]
    fn what_stands_behind_a_step_is_not_waited_for() {
        let steps = vec![
            Step::new("tests", |_| panic!("it must not run")).after("build"),
            Step::new("build", |_| Ok(Outcome::Passed)).behind(),
        ];
        let text = run_all(steps, "").to_string();
        assert!(text.starts_with("tests      0 s  NOT RUN  build: failed\n"), "{text}");
    }
}
