//! What recording the operating system's events costs.
//!
//! Each in turn, round by round, so that what disturbs one disturbs all: a program that does nothing; a storm of
//! context switches, two processes that wake each other over pipes; and a thousand short processes. Beside
//! `hetrace run --os` stand the bare program, `hetrace run` without these events, and `perf record` of the same
//! tracepoints. What was dropped is printed with each.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::Args;
use super::dormant;
use super::remains::Mark;
use crate::bench::ground::{self, Ground, output, succeeds};
use crate::bench::numbers::Samples;
use crate::bench::report::{Report, difference, number};
use crate::bench::setting::command;
use crate::repo;

/// How a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Bare,
    /// All libraries are loaded, as `hetrace env` does it, and nothing is recorded.
    Dormant,
    /// Options of `hetrace run`.
    Hetrace(&'static str, &'static [&'static str]),
    /// Tracepoints for `perf record -a`.
    Perf(&'static str, &'static str),
}

/// The scheduler's, of which the storm is made.
const SWITCHES: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup";
/// And system calls.
const CALLS: &str =
    "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,raw_syscalls:sys_enter,raw_syscalls:sys_exit";

const HOWS: [How; 7] = [
    How::Bare,
    How::Hetrace("hetrace run", &[]),
    How::Hetrace("--os tree --os-syscalls none", &["--os", "tree", "--os-syscalls", "none"]),
    How::Hetrace("--os tree", &["--os", "tree"]),
    How::Hetrace("--os system", &["--os", "system"]),
    How::Perf("perf record, switches", SWITCHES),
    How::Perf("perf record, with system calls", CALLS),
];

/// What closes tracepoints after a run lives for about a second; the next run would wait for it.
const CLOSING: Duration = Duration::from_millis(1300);
/// A program may take this much longer, in percent, and its start and end this many milliseconds.
const GOAL_STORM: f64 = 5.0;
const GOAL_TRUE: f64 = 8.0;

impl How {
    pub fn name(self) -> &'static str {
        match self {
            How::Bare => "bare",
            How::Dormant => "dormant",
            How::Hetrace(name, _) | How::Perf(name, _) => name,
        }
    }

    pub fn records_system(self) -> bool {
        !matches!(self, How::Bare | How::Dormant | How::Hetrace(_, []))
    }
}

/// What a run left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ran {
    wall_ms: f64,
    /// What the program printed for its figure, if it was asked for, and its processor time if it printed that, both
    /// in nanoseconds.
    figure: f64,
    processor: f64,
    /// Events of the operating system in the trace.
    events: f64,
    /// What was dropped, came too late, or was damaged, of both traces.
    pub lost: f64,
    /// Processor time of hetrace's reader of these events.
    reader_ms: f64,
}

/// A program that does nothing.
pub fn nothing(ground: &Ground, args: &Args, mark: &Mark, report: &mut Report) -> Result<()> {
    report.title("Start and end: milliseconds of `true`");
    let words = ["/bin/true".into()];
    let all = rounds(ground, args, mark, &HOWS[..5], &words, None)?;
    let traced = all[1].0.median();
    let rows = HOWS.iter().zip(&all).map(|(how, (wall, _))| {
        let goal = if how.records_system() { difference(GOAL_TRUE, 0) } else { String::new() };
        let added = difference(wall.median() - traced, 2);
        vec![how.name().to_owned(), number(wall.min(), 2), number(wall.median(), 2), added, goal]
    });
    report.table(&["", "least", "median", "to hetrace run", "goal"], &rows.collect::<Vec<_>>());
    report.keep("true", kept(&HOWS[..5], &all));
    Ok(())
}

/// Says what can't be compared here.
fn peers(report: &Report) {
    if !succeeds("perf", &["--version"]) {
        report.line("perf record is skipped: perf is not installed");
    }
    if !succeeds("modinfo", &["lttng-tracer"]) {
        report.line("LTTng's kernel tracer is skipped: there is no module lttng-tracer for this kernel");
    }
}

/// Busy loops of each processor.
const LOOPS: usize = 8;

/// Processes that do nothing but take processor time, until this is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn begin(loops: usize) -> Result<Self> {
        let mut busy = Self(Vec::new());
        for _ in 0..loops {
            busy.0.push(Command::new("sh").args(["-c", "ulimit -t 600; while :; do :; done"]).spawn()?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Then it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two processes that wake each other.
pub fn storms(ground: &Ground, args: &Args, mark: &Mark, report: &mut Report) -> Result<()> {
    ground::make("bench/programs", "build/switches").context("make -C bench/programs build/switches")?;
    peers(report);
    for (place, option, trips, loops) in [
        ("where the scheduler puts them", None, args.trips, 0),
        ("both on one processor", Some("-1"), args.trips, 0),
        ("on two processors", Some("-2"), args.trips / 50, 0),
        ("both on one processor, beside busy loops", Some("-1"), args.trips / 4, LOOPS),
    ] {
        let _busy = Busy::begin(loops * std::thread::available_parallelism().map_or(1, usize::from))?;
        report.title(&format!("Switches, {place}: nanoseconds of each of {trips} round trips"));

        let mut words: Vec<OsString> = vec![ground.program("switches").into(), "-n".into()];
        words.push(trips.to_string().into());
        words.extend(option.map(OsString::from));
        let all = rounds(ground, args, mark, &HOWS, &words, Some("roundtrip.ns"))?;
        storm_table(&all, report);
        report.keep(&format!("switches {place}"), kept(&HOWS, &all));
    }
    Ok(())
}

fn storm_table(all: &[(Samples, Vec<Ran>)], report: &Report) {
    let bare = all[0].0.median();
    let processor = |ran: &[Ran]| {
        let mut samples = Samples::default();
        ran.iter().for_each(|ran| samples.add(ran.processor));
        samples.median()
    };
    let bare_processor = processor(&all[0].1);
    let rows = HOWS.iter().zip(all).map(|(how, (ns, ran))| {
        let sum = |of: fn(&Ran) -> f64| ran.iter().map(of).sum::<f64>() + 0.0;
        let (events, lost, reader) = (sum(|r| r.events), sum(|r| r.lost), sum(|r| r.reader_ms));
        let per_event = 1e6 * reader / events;
        vec![
            how.name().to_owned(),
            number(ns.min(), 0),
            number(ns.median(), 0),
            number(ns.median() / bare, 2),
            number(processor(ran), 0),
            number(processor(ran) / bare_processor, 2),
            if how.records_system() { number(1.0 + GOAL_STORM / 100.0, 2) } else { String::new() },
            if how.records_system() { number(lost, 0) } else { String::new() },
            if events > 0.0 { number(events / ran.len() as f64, 0) } else { String::new() },
            if events > 0.0 { number(per_event, 0) } else { String::new() },
        ]
    });
    let heads = [
        "",
        "least",
        "median",
        "ratio",
        "processor",
        "ratio",
        "goal",
        "lost in all",
        "events",
        "reader, ns/event",
    ];
    report.table(&heads, &rows.collect::<Vec<_>>());
}

/// A thousand processes that end at once.
pub fn shorts(ground: &Ground, args: &Args, mark: &Mark, report: &mut Report) -> Result<()> {
    ground::make("tests/programs", "build/os").context("make -C tests/programs build/os")?;
    report.title("1,000 short processes: milliseconds");
    let program = repo::root().join("tests/programs/build/os");
    let words = [program.into(), "shorts".into(), "1000".into()];
    let all = rounds(ground, args, mark, &HOWS, &words, None)?;
    let bare = all[0].0.median();
    let rows = HOWS.iter().zip(&all).map(|(how, (wall, ran))| {
        let lost = ran.iter().map(|r| r.lost).sum::<f64>();
        let events = ran.iter().map(|r| r.events).sum::<f64>() / ran.len() as f64;
        let name = how.name().to_owned();
        let recorded = if how.records_system() { number(lost, 0) } else { String::new() };
        let events = if events > 0.0 { number(events, 0) } else { String::new() };
        let ratio = number(wall.median() / bare, 2);
        vec![name, number(wall.min(), 1), number(wall.median(), 1), ratio, recorded, events]
    });
    report.table(&["", "least", "median", "ratio", "lost in all", "events"], &rows.collect::<Vec<_>>());
    report.keep("shorts", kept(&HOWS, &all));
    Ok(())
}

/// Runs a program in all ways, in turn. The first round is for the caches. Returns, by way, the program's figure if
/// one was asked for, or else the time, and all that the runs left.
pub fn rounds(
    ground: &Ground,
    args: &Args,
    mark: &Mark,
    hows: &[How],
    words: &[OsString],
    key: Option<&str>,
) -> Result<Vec<(Samples, Vec<Ran>)>> {
    let mut all = vec![(Samples::default(), Vec::new()); hows.len()];
    for round in 0..=args.rounds {
        for (how, (samples, runs)) in hows.iter().zip(&mut all) {
            if matches!(how, How::Perf(..)) && !succeeds("perf", &["--version"]) {
                continue;
            }
            let ran = once(ground, *how, mark, words, key).with_context(|| how.name().to_owned())?;
            if how.records_system() {
                std::thread::sleep(CLOSING);
            }
            if round > 0 {
                samples.add(if key.is_some() { ran.figure } else { ran.wall_ms });
                runs.push(ran);
            }
        }
    }
    Ok(all)
}

fn once(ground: &Ground, how: How, mark: &Mark, program: &[OsString], key: Option<&str>) -> Result<Ran> {
    let trace = ground.work.join("trace-system");
    let data = ground.work.join("perf.data");
    let mut words: Vec<OsString> = Vec::new();
    match how {
        How::Bare => {}
        How::Dormant => words.extend(dormant::words(ground)?),
        How::Hetrace(_, options) => {
            words.push(ground.hetrace.clone().into());
            words.extend(["run", "-q", "-o"].map(OsString::from));
            words.push(trace.clone().into());
            words.extend(options.iter().map(OsString::from));
            words.push("--".into());
        }
        How::Perf(_, events) => {
            words.extend(["perf", "record", "-q", "-a", "-m", "4M", "-e", events, "-o"].map(OsString::from));
            words.push(data.clone().into());
            words.push("--".into());
        }
    }
    words.extend_from_slice(program);
    let mut command = command(&words)?;
    command.env(mark.0, &mark.1).stdin(Stdio::null());
    let start = Instant::now();
    let out = command.output()?;
    let mut ran = Ran { wall_ms: start.elapsed().as_secs_f64() * 1e3, ..Ran::default() };
    if !out.status.success() {
        bail!("{}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    if let Some(key) = key {
        ran.figure = figure(&out, key).with_context(|| format!("the program printed no {key}"))?;
        ran.processor = figure(&out, "processor.ns").unwrap_or(f64::NAN);
    }
    match how {
        How::Bare | How::Dormant => {}
        How::Hetrace(_, []) => ran.lost = dropped(&trace)?,
        How::Hetrace(..) => look(&trace, &mut ran)?,
        How::Perf(..) => ran.lost = perf_lost(&data),
    }
    let _ = fs::remove_dir_all(&trace);
    Ok(ran)
}

fn figure(out: &Output, key: &str) -> Option<f64> {
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

/// Reads what the manifest says of the operating system's events.
fn look(trace: &Path, ran: &mut Ran) -> Result<()> {
    let program = trace.join("hetrace");
    let manifest = manifest(&program)?;
    let of = |name: &str| manifest.pointer(&format!("/os/{name}")).and_then(Value::as_f64);
    if manifest.pointer("/os/way").and_then(Value::as_str) != Some("tracepoints") {
        bail!("this user may not have tracepoints: `hetrace doctor` says why");
    }
    ran.events = of("events").context("a manifest without events")?;
    ran.reader_ms = of("cpu_ns").unwrap_or(f64::NAN) / 1e6;
    let counts = ["dropped", "unwritten", "late", "damaged_bytes"];
    ran.lost = counts.iter().filter_map(|name| of(name)).sum::<f64>() + dropped(&program)?;
    Ok(())
}

fn manifest(trace: &Path) -> Result<Value> {
    let path = trace.join("hetrace/manifest.json");
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&text)?)
}

/// Returns what a program's trace lost.
fn dropped(trace: &Path) -> Result<f64> {
    let manifest = manifest(trace)?;
    let of = |at: &str| manifest.pointer(at).and_then(Value::as_f64).with_context(|| at.to_owned());
    Ok(of("/losses/records")? + of("/losses/device_commands")?)
}

/// Returns how many events perf lost, as far as its file says.
fn perf_lost(data: &Path) -> f64 {
    let file = data.to_string_lossy();
    let dump =
        output("sh", &["-c", &format!("perf script -i '{file}' --show-lost-events 2>/dev/null | grep LOST")]);
    let lost = |line: &str| line.rsplit(' ').find_map(|word| word.parse::<f64>().ok());
    // Of nothing the sum is -0.
    dump.unwrap_or_default().lines().filter_map(lost).sum::<f64>() + 0.0
}

fn kept(hows: &[How], all: &[(Samples, Vec<Ran>)]) -> Value {
    let of = |(how, (samples, runs)): (&How, &(Samples, Vec<Ran>))| {
        let lost: Vec<f64> = runs.iter().map(|r| r.lost).collect();
        let events: Vec<f64> = runs.iter().map(|r| r.events).collect();
        (how.name().to_owned(), json!({ "samples": samples.json(), "lost": lost, "events": events }))
    };
    hows.iter().zip(all).map(of).collect::<Map<_, _>>().into()
}
