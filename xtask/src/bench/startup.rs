//! What the user of `hetrace run` waits for before and after the program, and of each command that reads a
//! small trace.
//!
//! Times depend on what else the machine does, instructions of one thread hardly: both are shown. Programs run in turn, so
//! that what disturbs one disturbs all.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};

use super::ground::{Ground, product, succeeds};
use super::numbers::Samples;
use super::report::{Report, difference, number};
use super::scale::Scale;
use super::setting::command;
use crate::repo;

/// What a program that does nothing may take longer, in milliseconds.
const GOAL_TRUE: f64 = 8.0;
/// The same of a small program that computes, and of that program by itself.
const GOAL_SMALL: f64 = 20.0;
const GOAL_LIFETIME: f64 = 6.0;
/// What a reading command may take for a small trace.
const GOAL_READING: f64 = 10.0;

/// Arguments of `bench startup`.
#[derive(Parser)]
pub struct Args {
    /// The product; `target/release/hetrace` when absent
    #[arg(long)]
    hetrace: Option<PathBuf>,
    /// Fewer runs
    #[arg(long)]
    quick: bool,
    /// JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Measures only this.
pub fn alone(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make(&product)?;
    let mut report = Report::new(args.json);
    run(&ground, &Scale { rounds: 1, quick: args.quick }, &mut report)?;
    report.finish();
    Ok(ExitCode::SUCCESS)
}

/// A command that is measured.
struct Kind {
    name: String,
    words: Vec<OsString>,
    /// What it may take more than the first, in milliseconds.
    goal: Option<f64>,
}

impl Kind {
    fn new(name: &str, words: &[&dyn AsRef<std::ffi::OsStr>], goal: Option<f64>) -> Self {
        let words = words.iter().map(|word| word.as_ref().to_owned()).collect();
        Kind { name: name.to_owned(), words, goal }
    }
}

/// Measures and prints the tables. Returns what `hetrace run -- true` takes
/// more than `true`, in milliseconds.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) -> Result<f64> {
    let (hetrace, trace) = (&ground.hetrace, ground.work.join("trace-start"));
    let (run, o, dash) = (&"run", &"-o", &"--");
    let kinds = [
        Kind::new("true", &[&"true"], None),
        Kind::new("hetrace run -- true", &[hetrace, run, o, &trace, dash, &"true"], Some(GOAL_TRUE)),
        Kind::new("hetrace run -q -- true", &[hetrace, run, &"-q", o, &trace, dash, &"true"], None),
        Kind::new("hetrace --version", &[hetrace, &"--version"], None),
    ];
    report.title("Start and end: milliseconds for a program that does nothing");
    let samples = table(ground, scale, &kinds, report)?;
    let added = samples[1].median() - samples[0].median();
    let mut kept = json!({ "true": samples[0].json(), "traced": samples[1].json() });
    // Without an OpenCL device the rest says so and is left out.
    match small(ground, scale, report) {
        Ok(more) => kept["small"] = more,
        Err(error) => report.line(&format!("skipped: {error:#}")),
    }
    report.keep("startup", kept);
    Ok(added)
}

/// A small program of OpenCL, and commands that read its trace.
fn small(ground: &Ground, scale: &Scale, report: &mut Report) -> Result<Value> {
    let program = repo::root().join("tests/programs/build/linked");
    let (hetrace, trace) = (&ground.hetrace, ground.work.join("trace-start"));
    let (life, traced) = (ground.work.join("lifetime"), ground.work.join("lifetime-traced"));
    let kinds = [
        Kind::new("a small program", &[&"bash", &"-c", &LIVES, &life, &program], None),
        Kind::new(
            "hetrace run of it",
            &[hetrace, &"run", &"-o", &trace, &"--", &"bash", &"-c", &LIVES, &traced, &program],
            Some(GOAL_SMALL),
        ),
    ];
    for file in [&life, &traced] {
        let _ = fs::remove_file(file);
    }
    report.title("Start and end: milliseconds for a small OpenCL program");
    let samples = table(ground, scale, &kinds, report)?;
    let (bare, longer) = (lifetimes(&life)?, lifetimes(&traced)?);
    let added = longer.median() - bare.median();
    report.line(&format!(
        "its own lifetime: median {} ms, traced {} ({}; goal {}), least {} and {}",
        number(bare.median(), 2),
        number(longer.median(), 2),
        difference(added, 2),
        difference(GOAL_LIFETIME, 0),
        number(bare.min(), 2),
        number(longer.min(), 2),
    ));
    let reading = reading(ground, scale, &trace, report)?;
    Ok(json!({
        "bare": samples[0].json(),
        "traced": samples[1].json(),
        "lifetime": bare.json(),
        "lifetime_traced": longer.json(),
        "reading": reading,
    }))
}

/// Runs a program and adds its lifetime to a file, in seconds: without the time that a tracer around takes.
const LIVES: &str =
    r#"a=$EPOCHREALTIME; "$@" >/dev/null 2>&1; s=$?; echo "$a $EPOCHREALTIME" >>"$0"; exit $s"#;

/// Reads what [`LIVES`] wrote, in milliseconds. The first is for the caches.
fn lifetimes(file: &Path) -> Result<Samples> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut samples = Samples::default();
    for line in text.lines().skip(1) {
        let ends: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        if let [begin, end] = ends[..] {
            samples.add((end - begin) * 1e3);
        }
    }
    Ok(samples)
}

/// Commands that read a trace.
fn reading(ground: &Ground, scale: &Scale, trace: &Path, report: &Report) -> Result<Value> {
    let hetrace = &ground.hetrace;
    let timeline = ground.work.join("timeline-start");
    let goal = Some(GOAL_READING);
    let read = |name: &str| Kind::new(&format!("hetrace {name}"), &[hetrace, &name, &trace], goal);
    let mut kinds = vec![Kind::new("hetrace --version", &[hetrace, &"--version"], None)];
    kinds.extend(["tally", "print", "why", "lint", "check"].map(read));
    kinds.push(Kind::new("hetrace timeline", &[hetrace, &"timeline", &trace, &"-o", &timeline], goal));
    report.title("Reading a small trace, milliseconds");
    report.line(&format!("{} bytes of metadata", fs::metadata(trace.join("metadata"))?.len()));
    let samples = table(ground, scale, &kinds, report)?;
    let rows = kinds.iter().zip(&samples).map(|(kind, samples)| (kind.name.clone(), samples.json()));
    Ok(rows.collect::<serde_json::Map<_, _>>().into())
}

/// Runs all kinds in turn and prints their times, and the instructions of each.
fn table(ground: &Ground, scale: &Scale, kinds: &[Kind], report: &Report) -> Result<Vec<Samples>> {
    let runs = if scale.quick { 10 } else { 40 };
    let mut samples = vec![Samples::default(); kinds.len()];
    for round in 0..=runs {
        for (kind, samples) in kinds.iter().zip(&mut samples) {
            let took = once(ground, &kind.words, &kind.name)?;
            if round > 0 {
                samples.add(took); // The first is for the caches.
            }
        }
    }
    report.line(&format!(
        "{runs} runs each, interleaved, not pinned; instructions by callgrind, of hetrace only"
    ));
    let bare = samples[0].median();
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .zip(&samples)
        .map(|(kind, s)| {
            let millions = instructions(ground, kind).map_or_else(|_| "-".to_owned(), |n| number(n / 1e6, 2));
            vec![
                kind.name.clone(),
                number(s.mean(), 2),
                number(s.median(), 2),
                number(s.sd(), 2),
                number(s.min(), 2),
                difference(s.median() - bare, 2),
                kind.goal.map_or_else(String::new, |goal| difference(goal, 0)),
                millions,
            ]
        })
        .collect();
    report.table(&["command", "mean", "median", "sd", "min", "added", "goal", "M instr."], &rows);
    Ok(samples)
}

/// Runs a command once. Returns how long that took, in milliseconds.
fn once(ground: &Ground, words: &[OsString], what: &str) -> Result<f64> {
    if words.iter().any(|word| word == "run") {
        let _ = fs::remove_dir_all(ground.work.join("trace-start"));
    }
    let _ = fs::remove_file(ground.work.join("timeline-start"));
    let mut command = command(words)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status()?;
    let took = start.elapsed();
    // 1: something was found in the trace.
    if !matches!(status.code(), Some(0 | 1)) {
        bail!("{what}: {status}");
    }
    Ok(took.as_secs_f64() * 1e3)
}

/// Instructions of a command, without those of its children.
fn instructions(ground: &Ground, kind: &Kind) -> Result<f64> {
    if !succeeds("valgrind", &["--version"]) {
        bail!("valgrind is not installed");
    }
    let file = ground.work.join("callgrind");
    let mut option = OsString::from("--callgrind-out-file=");
    option.push(&file);
    let mut words: Vec<OsString> = vec!["valgrind".into(), "-q".into(), "--tool=callgrind".into(), option];
    words.extend_from_slice(&kind.words);
    once(ground, &words, &kind.name)?;
    let text = fs::read_to_string(&file).context("callgrind's result")?;
    let total =
        text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    total.context("no total")?.trim().parse().context("no number")
}
