//! Running a program bare and under trace, in turn.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Error, anyhow};
use hetrace_report::tally::{Options, TracingRow, tally};
use hetrace_session::children_time;
use hetrace_trace::text::ended_by;
use hetrace_trace::trace::Trace;

use crate::commands::watch::asked_to_stop;

/// What to measure.
#[derive(Debug)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The settings to compare it bare with.
    pub settings: Vec<Setting>,
    /// How often.
    pub rounds: usize,
    /// Whether the first run's output is shown.
    pub shows_output: bool,
}

/// How a program is traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Options of `hetrace run`.
    pub options: Vec<String>,
}

impl Setting {
    /// As it is typed.
    pub fn name(&self) -> String {
        self.options.join(" ")
    }
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum Failure {
    /// Ctrl-C was pressed.
    Stopped,
    /// The program failed, or ended differently.
    Program(String),
    /// Ours.
    Own(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

/// How long a run took, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// From the start of the command to its end.
    pub wall: f64,
    /// From the program's exec to its end; not a number where that is not known.
    pub lifetime: f64,
    /// Processor time of the program and of the children it waited for; not a number where that is not known.
    pub processor: f64,
}

/// What the traces of a setting say.
#[derive(Debug, Default)]
pub struct Traced {
    /// By round.
    pub times: Vec<Times>,
    /// What each trace states that tracing took, if it does.
    pub stated: Vec<TracingRow>,
    /// Events and device commands that were dropped, in all of them together.
    pub lost: u64,
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// By round.
    pub bare: Vec<Times>,
    /// Bare again in the same rounds.
    pub again: Vec<Times>,
    /// By setting.
    pub settings: Vec<Traced>,
}

/// Measures what a plan says.
pub fn all(plan: &Plan) -> Result<Measured, Failure> {
    let scratch = tempfile::Builder::new().prefix("hetrace-cost-").tempdir();
    let scratch = scratch.with_context(|| format!("a folder in {}", std::env::temp_dir().display()))?;
    let runner = Runner {
        plan,
        hetrace: std::env::current_exe().context("cannot find this program itself")?,
        errors: scratch.path().join("stderr"),
        trace: scratch.path().join("trace"),
    };
    let expected = runner.warm_up()?;
    let mut measured = Measured::default();
    measured.settings.resize_with(plan.settings.len(), Traced::default);
    // Bare, bare again, and the settings.
    let turns = plan.settings.len() + 2;
    for round in 0..plan.rounds {
        for turn in 0..turns {
            match (round + turn) % turns {
                0 => measured.bare.push(runner.bare(expected)?),
                1 => measured.again.push(runner.bare(expected)?),
                setting => runner.traced(expected, setting - 2, &mut measured)?,
            }
        }
    }
    Ok(measured)
}

struct Runner<'p> {
    plan: &'p Plan,
    hetrace: PathBuf,
    /// What a run writes to its standard error.
    errors: PathBuf,
    trace: PathBuf,
}

impl Runner<'_> {
    fn program(&self) -> Result<(&OsString, &[OsString]), Failure> {
        let program = self.plan.command.split_first().context("no program")?;
        Ok(program)
    }

    /// Runs the program once, as all runs are to end.
    fn warm_up(&self) -> Result<ExitStatus, Failure> {
        let (program, arguments) = self.program()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        if !self.plan.shows_output {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let status = command.status().map_err(|error| not_started(program, &error))?;
        if asked_to_stop() {
            return Err(Failure::Stopped);
        }
        if !status.success() {
            let how = in_words(status);
            let name = program.to_string_lossy();
            let what = format!(
                "{name} {how} without hetrace: nothing was measured; give it what it needs to succeed"
            );
            return Err(Failure::Program(what));
        }
        Ok(status)
    }

    /// Runs a command; what it prints is kept aside.
    fn time(&self, command: &mut Command, what: &OsString) -> Result<(ExitStatus, Times), Failure> {
        let errors = File::create(&self.errors).with_context(|| self.errors.display().to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let before = children_time();
        let started = Instant::now();
        let mut child = command.spawn().map_err(|error| not_started(what, &error))?;
        let executes = Instant::now();
        let status = child.wait().context("waiting for the program")?;
        let ended = Instant::now();
        if asked_to_stop() {
            return Err(Failure::Stopped);
        }
        let ns = |since: Instant| ended.duration_since(since).as_nanos() as f64;
        let processor = children_time().saturating_sub(before) as f64;
        Ok((status, Times { wall: ns(started), lifetime: ns(executes), processor }))
    }

    fn bare(&self, expected: ExitStatus) -> Result<Times, Failure> {
        let (program, arguments) = self.program()?;
        let (status, times) = self.time(Command::new(program).args(arguments), program)?;
        self.compare(expected, status, "without hetrace")?;
        Ok(times)
    }

    fn traced(&self, expected: ExitStatus, number: usize, to: &mut Measured) -> Result<(), Failure> {
        let setting = &self.plan.settings[number];
        let mut command = Command::new(&self.hetrace);
        command.args(["run", "-q", "-o"]).arg(&self.trace).args(&setting.options).arg("--");
        command.args(&self.plan.command);
        let (status, mut times) = self.time(&mut command, &self.hetrace.clone().into_os_string())?;
        let name = setting.name();
        if !self.trace.is_dir() {
            let said = self.said();
            return Err(Failure::Own(anyhow!("`hetrace run {name}` failed ({}){said}", in_words(status))));
        }
        self.compare(expected, status, &format!("under `hetrace run {name}`"))?;
        let to = &mut to.settings[number];
        [times.lifetime, times.processor] = self.read(to)?;
        to.times.push(times);
        fs::remove_dir_all(&self.trace).with_context(|| self.trace.display().to_string())?;
        Ok(())
    }

    /// Reads a trace; returns how long its program lived, and its processor time.
    fn read(&self, to: &mut Traced) -> Result<[f64; 2], Failure> {
        let trace = Trace::open(&self.trace).with_context(|| self.trace.display().to_string())?;
        let tables = tally(&trace, &Options::default());
        to.lost = to.lost.saturating_add(tables.lost_events).saturating_add(tables.lost_device_commands);
        to.stated.extend(tables.tracing);
        let manifest = trace.manifest();
        Ok([manifest.lifetime_ns, manifest.processor_ns].map(|ns| ns.map_or(f64::NAN, |ns| ns as f64)))
    }

    /// The program must end as in its first run: what it did else is not to be compared.
    fn compare(&self, expected: ExitStatus, status: ExitStatus, how: &str) -> Result<(), Failure> {
        if status == expected {
            return Ok(());
        }
        let program = self.plan.command.first().map(|name| name.to_string_lossy().into_owned());
        Err(Failure::Program(format!(
            "{} {} {how}, and {} in its first run: the runs are not comparable{}",
            program.unwrap_or_default(),
            in_words(status),
            in_words(expected),
            self.said(),
        )))
    }

    /// The last lines that a run wrote to its standard error.
    fn said(&self) -> String {
        const LINES: usize = 8;
        let text = fs::read(&self.errors).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
        last.iter().map(|line| format!("\n  {line}")).collect()
    }
}

fn not_started(program: &(impl AsRef<Path> + ?Sized), error: &std::io::Error) -> Failure {
    Failure::Own(anyhow!("{}: {error}", program.as_ref().display()))
}

fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => ended_by(signal),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}
