//! What the launcher does for a record: writing it, keeping it for snapshots, comparing it with triggers, dividing the run.
//!
//! Instructions, counted by callgrind: unlike time they do not depend on what else the machine does. What a run takes
//! whatever it records goes out of it by two runs, one with twice the records of the other.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::Args;
use super::remains::Mark;
use crate::bench::ground::{self, Ground, succeeds};
use crate::bench::numbers::Samples;
use crate::bench::report::{Report, number};
use crate::bench::setting::command;
use crate::repo;

/// How it is run: a name, and options of `hetrace run`.
const HOWS: [(&str, &[&str]); 9] = [
    ("written", &[]),
    ("--rotate-size 1M", &["--rotate-size", "1M"]),
    ("--rotate-size 256K", &["--rotate-size", "256K"]),
    ("--flight 60s", &["--flight", "60s"]),
    ("and a trigger on what is not called", &["--flight", "60s", "--trigger", "clFlush.duration > 1s"]),
    ("on each launch", &["--flight", "60s", "--trigger", "clEnqueueNDRangeKernel.duration > 1s"]),
    ("on an argument of it", &["--flight", "60s", "--trigger", "clEnqueueNDRangeKernel.work_dim > 7"]),
    ("on all calls", &["--flight", "60s", "--trigger", "duration > 60s"]),
    (
        "on each command",
        &["--flight", "60s", "--trigger", "kernel.duration > 60s && kernel.name == \"gemm*\""],
    ),
];
/// Launches of the shorter run.
const LAUNCHES: u32 = 20_000;
/// Callgrind's counts of two runs differ by the moments at which the launcher looks: so many rounds are enough.
const ROUNDS: usize = 3;

/// Instructions, and records in the trace.
type Counted = (f64, f64);

/// Counts and prints the table.
pub fn run(ground: &Ground, args: &Args, mark: &Mark, report: &mut Report) -> Result<()> {
    report.title("The launcher's instructions for a record (callgrind)");
    if !succeeds("valgrind", &["--version"]) {
        report.line("skipped: valgrind is not installed");
        return Ok(());
    }
    ground::make("tests/programs", "build/windows").context("make -C tests/programs build/windows")?;
    let mut all = vec![Samples::default(); HOWS.len()];
    for _ in 0..args.rounds.min(ROUNDS) {
        for ((name, options), samples) in HOWS.iter().zip(&mut all) {
            let count = |launches| once(ground, mark, options, launches).with_context(|| (*name).to_owned());
            let (short, long) = (count(LAUNCHES)?, count(2 * LAUNCHES)?);
            // Of a flight recording nothing is written that could be counted: the program records the same.
            let records = if options.contains(&"--flight") {
                f64::from(LAUNCHES) * per_launch(ground, mark)?
            } else {
                long.1 - short.1
            };
            samples.add((long.0 - short.0) / records);
        }
    }
    let base = all[0].median();
    let mut kept = Map::new();
    let rows = HOWS.iter().zip(&all).map(|((name, _), samples)| {
        let median = samples.median();
        kept.insert((*name).to_owned(), json!(median));
        vec![(*name).to_owned(), number(samples.min(), 0), number(median, 0), number(median / base, 2)]
    });
    report.table(&["", "least", "median", "ratio"], &rows.collect::<Vec<_>>());
    report.keep("drain", Value::Object(kept));
    Ok(())
}

/// Returns how many records a launch of the program makes.
fn per_launch(ground: &Ground, mark: &Mark) -> Result<f64> {
    use std::sync::OnceLock;
    static KNOWN: OnceLock<f64> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let (short, long) = (once(ground, mark, &[], LAUNCHES)?, once(ground, mark, &[], 2 * LAUNCHES)?);
    Ok(*KNOWN.get_or_init(|| (long.1 - short.1) / f64::from(LAUNCHES)))
}

fn once(ground: &Ground, mark: &Mark, options: &[&str], launches: u32) -> Result<Counted> {
    let trace = ground.work.join("trace-drain");
    let counts = ground.work.join("callgrind.out");
    for path in [&trace, &trace.with_extension("flight")] {
        let _ = fs::remove_dir_all(path);
    }
    let mut words: Vec<OsString> = ["valgrind", "--tool=callgrind", "-q"].map(OsString::from).into();
    words.push(format!("--callgrind-out-file={}", counts.display()).into());
    words.push(ground.hetrace.clone().into());
    words.extend(["run", "-q", "-o"].map(OsString::from));
    words.push(trace.clone().into());
    words.extend(options.iter().map(OsString::from));
    let program: PathBuf = repo::root().join("tests/programs/build/windows");
    words.extend(["--".into(), program.into(), format!("launch:{launches}").into()]);
    let mut command = command(&words)?;
    let out = command.env(mark.0, &mark.1).stdin(Stdio::null()).output()?;
    if !out.status.success() {
        bail!("{}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    let text = fs::read_to_string(&counts).context("callgrind's counts")?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary:").or(line.strip_prefix("totals:")));
    let instructions = total.and_then(|total| total.split_whitespace().next()?.parse().ok());
    let instructions = instructions.context("callgrind's sum")?;
    let records = records(&trace).unwrap_or(0.0);
    let _ = fs::remove_dir_all(&trace);
    Ok((instructions, records))
}

/// Returns the records of a trace, or of all its parts.
fn records(trace: &PathBuf) -> Option<f64> {
    let of = |folder: PathBuf| -> Option<f64> {
        let text = fs::read(folder.join("hetrace/manifest.json")).ok()?;
        serde_json::from_slice::<Value>(&text).ok()?["written"]["records"].as_f64()
    };
    if let Some(records) = of(trace.clone()) {
        return Some(records);
    }
    let parts = fs::read_dir(trace).ok()?.flatten();
    Some(parts.filter_map(|part| of(part.path())).sum())
}
