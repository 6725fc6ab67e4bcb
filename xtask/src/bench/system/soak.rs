//! The service's memory in simulated hours: what happens in a day, without the waiting in between. Its processes
//! come and go, one that lives on is recorded by all sessions, and after each hour it is looked what the service holds.
//!
//! First one session of all hours, then a session for each hour. What is left by an hour adds up over a day, so
//! the end is compared with the beginning, less the first hours, in which caches fill.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Args, Mark, dormant};
use crate::bench::ground::{self, Ground};
use crate::bench::numbers::Samples;
use crate::bench::report::{Report, difference, number};
use crate::bench::setting::command;
use crate::repo;

/// Processes in an hour.
const PROCESSES: u32 = 20;
/// Calls of an iteration of the program.
const CALLS: u32 = 16;
/// How much more the service may hold in the end: less than a tenth of a KiB for each process that came and went.
const GOAL_KIB: f64 = 64.0;
/// Longest wait for the service.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the service holds.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    own_kib: f64,
    mapped_kib: f64,
    files: f64,
    threads: f64,
    shared_kib: f64,
}

/// A service that is ended when this is dropped.
struct Service {
    child: Child,
    hetrace: std::path::PathBuf,
    mark: Mark,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// Measures and prints the table.
pub fn run(ground: &Ground, args: &Args, mark: &Mark, report: &mut Report) -> Result<()> {
    ground::make("tests/programs", "build/linked").context("make -C tests/programs build/linked")?;
    ground::make("bench/programs", "build/hold_threads").context("make -C bench/programs hold_threads")?;
    report.title(&format!(
        "The service in {} hours: {PROCESSES} processes and {} calls in each, and one process throughout",
        args.hours, args.calls
    ));
    for (name, single) in [("one session", true), ("a session for each hour", false)] {
        let (held, lost) = day(ground, args, mark, single).with_context(|| name.to_owned())?;
        table(name, &held, lost, report);
    }
    Ok(())
}

/// Runs all hours; returns what the service held after each, and the records that were dropped.
fn day(ground: &Ground, args: &Args, mark: &Mark, single: bool) -> Result<(Vec<Held>, f64)> {
    let service = Service::start(ground, mark)?;
    let mut resident = resident(ground, mark)?;
    let trace = ground.work.join("trace-service");
    let mut held = Vec::new();
    let mut lost = 0.0;
    for hour in 0..args.hours {
        if !single || hour == 0 {
            service.ask(&["start", "-o", &trace.to_string_lossy()])?;
        }
        for _ in 0..PROCESSES {
            let each = (args.calls / PROCESSES / CALLS).max(1);
            let linked = repo::root().join("tests/programs/build/linked").into_os_string();
            let mut words = dormant::words(ground)?;
            words.extend([linked, each.to_string().into()]);
            let out = command(&words)?.env(mark.0, &mark.1).stdin(Stdio::null()).output()?;
            if !out.status.success() {
                bail!("linked: {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
            }
        }
        service.ask(&["pause"])?;
        service.ask(&["resume"])?;
        service.settled(1)?;
        if !single || hour + 1 == args.hours {
            let so_far = service.session()?;
            lost += so_far["lost"].as_f64().unwrap_or(f64::NAN);
            service.ask(&["stop"])?;
            fs::remove_dir_all(&trace).with_context(|| trace.display().to_string())?;
        }
        held.push(service.held()?);
    }
    drop(resident.stdin.take()); // So that it ends.
    resident.wait()?;
    Ok((held, lost))
}

/// Starts the process that is there all day.
fn resident(ground: &Ground, mark: &Mark) -> Result<Child> {
    let mut words = dormant::words(ground)?;
    words.extend([ground.program("hold_threads").into(), "4".into(), "1000".into()]);
    let mut command = command(&words)?;
    command.env(mark.0, &mark.1).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
    if !line.starts_with("ready") {
        bail!("hold_threads did not get ready");
    }
    Ok(child)
}

impl Service {
    fn start(ground: &Ground, mark: &Mark) -> Result<Self> {
        // There is one of a user; another's is not ours to measure.
        let said = ask(&ground.hetrace, mark, &["status", "--json"])?;
        if serde_json::from_str::<Value>(&said)?["service"].is_object() {
            bail!("a service of this user is running: end it first");
        }
        let mut command = command(&[ground.hetrace.clone().into(), "service".into()])?;
        command.env(mark.0, &mark.1).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let service = Service { child, hetrace: ground.hetrace.clone(), mark: mark.clone() };
        service.until("service", |status| status["service"].is_object())?;
        Ok(service)
    }

    fn ask(&self, words: &[&str]) -> Result<String> {
        ask(&self.hetrace, &self.mark, words)
    }

    fn session(&self) -> Result<Value> {
        let status: Value = serde_json::from_str(&self.ask(&["status", "--json"])?)?;
        Ok(status["service"]["session"].clone())
    }

    /// Waits until only so many processes are recorded: those that ended are forgotten a little later.
    fn settled(&self, processes: u64) -> Result<()> {
        let recorded = |status: &Value| status["service"]["session"]["processes"].as_u64();
        // The one that lives on may have nothing to record in this session.
        self.until("end of its processes", |status| recorded(status).is_some_and(|n| n <= processes))
    }

    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<()> {
        let start = Instant::now();
        loop {
            let status: Value = serde_json::from_str(&self.ask(&["status", "--json"])?)?;
            if is_so(&status) {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("no {what} in {} seconds: {status}", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn held(&self) -> Result<Held> {
        let folder = Path::new("/proc").join(self.child.id().to_string());
        let status = fs::read_to_string(folder.join("status")).context("the service has ended")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(f64::NAN)
        };
        Ok(Held {
            own_kib: field("RssAnon:"),
            mapped_kib: field("RssShmem:"),
            threads: field("Threads:"),
            files: fs::read_dir(folder.join("fd"))?.count() as f64,
            shared_kib: shared()?,
        })
    }
}

fn ask(hetrace: &Path, mark: &Mark, words: &[&str]) -> Result<String> {
    let mut command = command(&[hetrace.into()])?;
    let out = command.args(words).env(mark.0, &mark.1).stdin(Stdio::null()).output()?;
    if !out.status.success() {
        bail!("hetrace {}: {}", words.join(" "), String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Returns what all files in shared memory take, others' among them.
fn shared() -> Result<f64> {
    let out = Command::new("du").args(["-sk", "/dev/shm"]).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    text.split_whitespace().next().and_then(|n| n.parse().ok()).context("du says nothing")
}

fn table(name: &str, held: &[Held], lost: f64, report: &mut Report) {
    // The first quarter is for what fills once; the rest is halved.
    let rest = &held[held.len() / 4..];
    let (early, late) = rest.split_at(rest.len() / 2);
    let median = |hours: &[Held], of: fn(&Held) -> f64| {
        let mut samples = Samples::default();
        hours.iter().for_each(|hour| samples.add(of(hour)));
        samples.median()
    };
    type Of = fn(&Held) -> f64;
    let parts: [(&str, Of, &str); 5] = [
        ("own memory, KiB", |h| h.own_kib, "own_kib"),
        ("mapped rings, KiB", |h| h.mapped_kib, "mapped_kib"),
        ("open files", |h| h.files, "files"),
        ("threads", |h| h.threads, "threads"),
        ("shared memory of all, KiB", |h| h.shared_kib, "shared_kib"),
    ];
    let row = |(what, of, _): &(&str, Of, &str)| {
        let grown = median(late, *of) - median(early, *of);
        let goal = match *what {
            "open files" | "threads" => difference(0.0, 0),
            "own memory, KiB" => difference(GOAL_KIB, 0),
            _ => String::new(),
        };
        let ends = [held.first(), held.last()].map(|hour| number(hour.map_or(f64::NAN, of), 0));
        let [first, last] = ends;
        vec![
            (*what).to_owned(),
            first,
            number(median(early, *of), 0),
            number(median(late, *of), 0),
            last,
            difference(grown, 0),
            goal,
        ]
    };
    report.line("");
    report.line(&format!("{name}: {} dropped records", number(lost, 0)));
    let heads =
        ["the service's", "first hour", "early half", "late half", "last hour", "grown", "goal, at most"];
    report.table(&heads, &parts.iter().map(row).collect::<Vec<_>>());
    let series = |(_, of, key): &(&str, Of, &str)| {
        ((*key).to_owned(), Value::from(held.iter().map(of).collect::<Vec<f64>>()))
    };
    let all: serde_json::Map<_, _> = parts.iter().map(series).collect();
    report.keep(&format!("service, {name}"), json!({ "hours": all, "lost": lost }));
}
