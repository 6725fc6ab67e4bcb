//! `cargo xtask bench analyze`: how fast a trace becomes an answer, beside babeltrace2 on
//! the same traces, in one run.

mod counts;
mod process;
mod rows;
mod traces;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use serde_json::json;

use self::rows::{Found, Way};
use self::traces::{Trace, Traces};
use super::ground::{Ground, output, product};
use super::report::{Report, number};
use crate::repo;

/// Arguments of `bench analyze`.
#[derive(Parser)]
#[command(after_help = "\
Traces are recorded once and stay in target/bench/analyze: one by LTTng-UST of a program with 12
functions in two processes of two threads; one by hetrace of four threads that make OpenCL commands;
and, with --big, a long one of the same, for memory. Programs on one core are pinned to the last
one. All run with `chrt -f 1` where that is allowed, ours and the peer alike: other programs wait
meanwhile.

Times are medians of interleaved rounds. A machine that does other things, too, makes them longer;
instructions per event (counted by callgrind on short traces) do not depend on that.")]
pub struct Args {
    /// Runs of each command, interleaved; with 0 only memory and instructions are measured
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Events in the traces
    #[arg(long, value_enum, default_value_t = Scale::Full)]
    scale: Scale,
    /// Record the long trace for memory, too, if it is not there yet (5 GB, minutes)
    #[arg(long)]
    big: bool,
    /// Record the traces anew
    #[arg(long)]
    fresh: bool,
    /// Where the traces are kept [default: target/bench/analyze]
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Run only these commands: names, or parts of them (may be repeated)
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Do not measure memory, which takes minutes on the long trace
    #[arg(long)]
    no_memory: bool,
    /// Do not count instructions
    #[arg(long)]
    no_counts: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; to record, its OpenCL library must lie beside it
    /// [default: target/release/hetrace]
    #[arg(long, value_name = "PATH", env = "HETRACE_BIN")]
    hetrace: Option<PathBuf>,
}

/// How long the traces are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// 20 million events; 5 GB for memory
    Full,
    /// A million, to try; 250 MB for memory
    Small,
}

impl Scale {
    /// Events in a trace.
    fn events(self) -> u64 {
        match self {
            Scale::Full => 20_000_000,
            Scale::Small => 1_000_000,
        }
    }

    /// Bytes of the long trace.
    fn big(self) -> u64 {
        match self {
            Scale::Full => 5_000_000_000,
            Scale::Small => 250_000_000,
        }
    }
}

/// Measures everything. A missed target is reported and is no failure.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make_analyze(&product)?;
    let mut report = Report::new(args.json);
    let mut machine = ground.machine();
    machine["measured binary"] = json!(product.display().to_string());
    machine["babeltrace2"] = json!(
        output("babeltrace2", &["--version"])
            .and_then(|text| text.lines().next().map(str::to_owned))
            .unwrap_or_else(|| "not installed: there is nothing to compare with".to_owned())
    );
    report.title("Machine");
    for (key, value) in machine.as_object().into_iter().flatten() {
        report.line(&format!("{key}: {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    report.keep("machine", machine);

    let cache = args.traces.clone().unwrap_or_else(|| repo::root().join("target/bench/analyze"));
    let traces = Traces::make(&ground, &cache, args.scale, args.big, args.fresh, &report)?;
    describe(&traces, &mut report);
    let chosen = |way: &Way| args.only.is_empty() || args.only.iter().any(|part| way.name.contains(part));
    let mut found = Found::default();
    if args.rounds > 0 {
        rows::times(&ground, &traces, args.rounds, &chosen, &mut found, &mut report);
        rows::first_lines(&ground, &traces, args.rounds, &chosen, &mut found, &mut report);
    }
    if !args.no_memory {
        rows::memory(&ground, &traces, &chosen, &mut found, &mut report);
    }
    if !args.no_counts {
        counts::run(&ground, &cache, args.fresh, &chosen, &mut report);
    }
    verdict::print(&found, args.scale, &mut report);
    report.finish();
    Ok(ExitCode::SUCCESS)
}

fn describe(traces: &Traces, report: &mut Report) {
    report.title("Traces");
    let row = |t: &&Trace| {
        vec![
            t.name.clone(),
            number(t.events as f64 / 1e6, 2),
            number(t.bytes as f64 / 1e6, 1),
            number(t.bytes as f64 / t.events as f64, 1),
            t.lost.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = traces.all().iter().map(row).collect();
    report.table(&["trace", "million events", "MB", "bytes/event", "lost"], &rows);
    for trace in traces.all().iter().filter(|t| t.lost > 0) {
        report.line(&format!("{}: events were lost; record it anew with --fresh", trace.name));
    }
    for note in &traces.notes {
        report.line(note);
    }
    report.keep("traces", json!(rows));
}
