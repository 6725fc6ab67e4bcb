//! `cargo xtask bench system`: what recording the operating system's events costs.
//!
//! Each in turn, round by round, so that what disturbs one disturbs all: a program that does nothing; a storm of
//! context switches, two processes that wake each other over pipes; and a thousand short processes. Beside
//! `hetrace run --os` stand the bare program, `hetrace run` without these events, and `perf record` of the same
//! tracepoints. What was dropped is printed with each.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Map, Value, json};

use super::ground::{self, Ground, output, product, succeeds};
use super::numbers::Samples;
use super::report::{Report, difference, number};
use super::setting::command;
use crate::repo;

/// Arguments of `bench system`.
#[derive(Parser)]
pub struct Args {
    /// Rounds
    #[arg(long, default_value_t = 8)]
    rounds: usize,
    /// Round trips of the storm; a fiftieth of them on two processors, where each takes longer
    #[arg(long, default_value_t = 200_000)]
    trips: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its OpenCL library lies beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

/// How a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Bare,
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
/// Longest wait for what should end by itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// In the environment of all that runs, so that what stays is found.
const MARK: &str = "BENCH_SYSTEM";
/// A program may take this much longer, in percent, and its start and end this many milliseconds.
const GOAL_STORM: f64 = 5.0;
const GOAL_TRUE: f64 = 8.0;

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Bare => "bare",
            How::Hetrace(name, _) | How::Perf(name, _) => name,
        }
    }

    fn records_system(self) -> bool {
        !matches!(self, How::Bare | How::Hetrace(_, []))
    }
}

/// What a run left.
#[derive(Debug, Clone, Copy, Default)]
struct Ran {
    wall_ms: f64,
    /// What the program printed for its figure, if it was asked for, and its processor time, both in nanoseconds.
    figure: f64,
    processor: f64,
    /// Events of the operating system in the trace.
    events: f64,
    /// What was dropped, came too late, or was damaged.
    lost: f64,
    /// Processor time of hetrace's reader of these events.
    reader_ms: f64,
}

/// Measures all.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    ground::make("bench/programs", "build/switches").context("make -C bench/programs build/switches")?;
    ground::make("tests/programs", "build/os").context("make -C tests/programs build/os")?;
    let ground = Ground::make_analyze(&product)?;
    let mut report = Report::new(args.json);
    let machine = ground.machine();
    report.line(&format!("{} rounds; {machine:#}", args.rounds));
    report.keep("machine", machine);
    if !succeeds("perf", &["--version"]) {
        report.line("perf record is skipped: perf is not installed");
    }
    if !succeeds("modinfo", &["lttng-tracer"]) {
        report.line("LTTng's kernel tracer is skipped: there is no module lttng-tracer for this kernel");
    }
    let sessions = sessions();
    nothing(&ground, args, &mut report)?;
    storms(&ground, args, &mut report)?;
    shorts(&ground, args, &mut report)?;
    stays(&sessions, &mut report)?;
    report.finish();
    Ok(ExitCode::SUCCESS)
}

/// A program that does nothing.
fn nothing(ground: &Ground, args: &Args, report: &mut Report) -> Result<()> {
    report.title("Start and end: milliseconds of `true`");
    let words = ["/bin/true".into()];
    let all = rounds(ground, args, &HOWS[..5], &words, None)?;
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

/// Two processes that wake each other.
fn storms(ground: &Ground, args: &Args, report: &mut Report) -> Result<()> {
    for (place, option, trips) in [
        ("where the scheduler puts them", None, args.trips),
        ("both on one processor", Some("-1"), args.trips),
        ("on two processors", Some("-2"), args.trips / 50),
    ] {
        report.title(&format!("Switches, {place}: nanoseconds of each of {trips} round trips"));

        let mut words: Vec<OsString> = vec![ground.program("switches").into(), "-n".into()];
        words.push(trips.to_string().into());
        words.extend(option.map(OsString::from));
        let all = rounds(ground, args, &HOWS, &words, Some("roundtrip.ns"))?;
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
fn shorts(ground: &Ground, args: &Args, report: &mut Report) -> Result<()> {
    report.title("1,000 short processes: milliseconds");
    let program = repo::root().join("tests/programs/build/os");
    let words = [program.into(), "shorts".into(), "1000".into()];
    let all = rounds(ground, args, &HOWS, &words, None)?;
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
fn rounds(
    ground: &Ground,
    args: &Args,
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
            let ran = once(ground, *how, words, key).with_context(|| how.name().to_owned())?;
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

fn once(ground: &Ground, how: How, program: &[OsString], key: Option<&str>) -> Result<Ran> {
    let trace = ground.work.join("trace-system");
    let data = ground.work.join("perf.data");
    let mut words: Vec<OsString> = Vec::new();
    match how {
        How::Bare => {}
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
    command.env(MARK, std::process::id().to_string()).stdin(Stdio::null());
    let start = Instant::now();
    let out = command.output()?;
    let mut ran = Ran { wall_ms: start.elapsed().as_secs_f64() * 1e3, ..Ran::default() };
    if !out.status.success() {
        bail!("{}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    if let Some(key) = key {
        let printed = |key: &str| figure(&out, key).with_context(|| format!("the program printed no {key}"));
        (ran.figure, ran.processor) = (printed(key)?, printed("processor.ns")?);
    }
    match how {
        How::Bare | How::Hetrace(_, []) => {}
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

/// Reads what the manifest says.
fn look(trace: &Path, ran: &mut Ran) -> Result<()> {
    let path = trace.join("hetrace/hetrace/manifest.json");
    let manifest: Value = serde_json::from_slice(&fs::read(&path)?)?;
    let of = |name: &str| manifest.pointer(&format!("/os/{name}")).and_then(Value::as_f64);
    if manifest.pointer("/os/way").and_then(Value::as_str) != Some("tracepoints") {
        bail!("this user may not have tracepoints: `hetrace doctor` says why");
    }
    ran.events = of("events").context("a manifest without events")?;
    ran.reader_ms = of("cpu_ns").unwrap_or(f64::NAN) / 1e6;
    let counts = ["dropped", "unwritten", "late", "damaged_bytes"];
    ran.lost = counts.iter().filter_map(|name| of(name)).sum();
    Ok(())
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

/// Returns the sessions in shared memory.
fn sessions() -> Vec<PathBuf> {
    let folders = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let ours = folders.filter(|f| f.file_name().to_string_lossy().starts_with("hetrace-"));
    let within = ours.flat_map(|f| fs::read_dir(f.path()).into_iter().flatten().flatten());
    within.map(|f| f.path()).collect()
}

/// Waits until nothing of the runs is there any more, and says what stayed.
fn stays(before: &[PathBuf], report: &mut Report) -> Result<()> {
    let mark = format!("{MARK}={}", std::process::id());
    let marked = |pid: &PathBuf| {
        let environ = fs::read(pid.join("environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|variable| variable == mark.as_bytes())
    };
    let start = Instant::now();
    let processes = loop {
        let all = fs::read_dir("/proc")?.flatten().map(|e| e.path());
        let left = all.filter(marked).count();
        if left == 0 || start.elapsed() > PATIENCE {
            break left;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let left = sessions().into_iter().filter(|path| !before.contains(path)).count();
    report.title("What stays");
    report.line(&format!("{processes} processes, {left} sessions in shared memory (others' among them)"));
    report.keep("stays", json!({ "processes": processes, "sessions": left }));
    Ok(())
}

fn kept(hows: &[How], all: &[(Samples, Vec<Ran>)]) -> Value {
    let of = |(how, (samples, runs)): (&How, &(Samples, Vec<Ran>))| {
        let lost: Vec<f64> = runs.iter().map(|r| r.lost).collect();
        let events: Vec<f64> = runs.iter().map(|r| r.events).collect();
        (how.name().to_owned(), json!({ "samples": samples.json(), "lost": lost, "events": events }))
    };
    hows.iter().zip(all).map(of).collect::<Map<_, _>>().into()
}
