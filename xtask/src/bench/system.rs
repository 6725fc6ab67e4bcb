//! `cargo xtask bench system`: hetrace on a whole machine: what it costs where it is not used, what recording the
//! operating system's events costs, and what stays of it. Each [`Part`] can be run alone.

mod article;
mod dormant;
mod drain;
mod os;
mod remains;
mod soak;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};

use super::ground::{Ground, product};
use super::report::Report;
use remains::{Before, MARK, Mark};

/// Arguments of `bench system`.
#[derive(Parser)]
pub struct Args {
    /// Only these parts, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,
    /// Rounds
    #[arg(long, default_value_t = 8)]
    rounds: usize,
    /// Round trips of the storm; a fiftieth of them on two processors, where each takes longer
    #[arg(long, default_value_t = 200_000)]
    trips: u32,
    /// Simulated hours of the service
    #[arg(long, default_value_t = 24)]
    hours: u32,
    /// Recorded calls in each simulated hour
    #[arg(long, default_value_t = 400_000)]
    calls: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its libraries lie beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Instructions of an OpenCL and of a CPU program with all libraries loaded and nothing recorded
    Dormant,
    /// The CLUST article's Table 5: an iteration on eight sizes of images, with `--os tree`
    Article,
    /// `true` with the operating system's events
    True,
    /// A storm of context switches
    Storm,
    /// A thousand processes that start and end
    Shorts,
    /// The launcher's instructions for a record: written, in parts, kept for snapshots, with triggers
    Drain,
    /// The service's memory in simulated hours
    Service,
}

/// Measures what was asked for, or all.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.rounds == 0 || args.trips < 50 || args.hours == 0 || args.calls == 0 {
        bail!("--rounds, --hours and --calls must be at least 1, --trips at least 50");
    }
    let ground = Ground::make_system(&product(args.hetrace.as_deref()))?;
    let mut report = Report::new(args.json);
    let machine = ground.machine();
    report.line(&format!("{} rounds; {machine:#}", args.rounds));
    report.keep("machine", machine);
    let before = Before::look();
    // All that runs from here on has it in its environment.
    let mark: Mark = (MARK, std::process::id().to_string());
    for part in Part::value_variants().iter().filter(|p| args.only.is_empty() || args.only.contains(p)) {
        match part {
            Part::Dormant => dormant::run(&ground, args, &mut report)?,
            Part::Article => article::run(&ground, args, &mark, &mut report)?,
            Part::True => os::nothing(&ground, args, &mark, &mut report)?,
            Part::Storm => os::storms(&ground, args, &mark, &mut report)?,
            Part::Shorts => os::shorts(&ground, args, &mark, &mut report)?,
            Part::Drain => drain::run(&ground, args, &mark, &mut report)?,
            Part::Service => soak::run(&ground, args, &mark, &mut report)?,
        }
    }
    before.compare(&mark, &mut report)?;
    report.finish();
    Ok(ExitCode::SUCCESS)
}
