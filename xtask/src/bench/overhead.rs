//! `cargo xtask bench overhead`: what tracing OpenCL costs, in one run: bare,
//! dormant, hetrace in its modes, and the LTTng-UST peer, interleaved.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use super::ground::{Ground, product};
use super::report::Report;
use super::scale::Scale;
use super::verdict::Found;
use super::{
    calls, commands, disk, instructions, iterations, layers, memory, parts, startup, sustained, verdict,
};

/// Arguments of `bench overhead`.
#[derive(Parser)]
pub struct Args {
    /// Processes per setting; each measures several loops
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Fewer rounds and sizes: minutes instead of a quarter of an hour
    #[arg(long)]
    quick: bool,
    /// Only count instructions per call: no times, a minute
    #[arg(long)]
    instructions: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its OpenCL library lies beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

/// Measures everything. A missed target is reported and is no failure.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make(&product)?;
    let rounds = if args.quick { args.rounds.min(3) } else { args.rounds };
    let scale = Scale { rounds: rounds.max(1) as usize, quick: args.quick };
    let mut report = Report::new(args.json);

    let machine = ground.machine();
    report.title("Machine");
    for (key, value) in machine.as_object().into_iter().flatten() {
        report.line(&format!("{key}: {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    if let Err(why) = &ground.peer {
        report.line(&format!("the LTTng peer is skipped: {why}"));
    }
    report.keep("machine", machine);

    if args.instructions {
        instructions::run(&ground, &mut report);
        layers::run(&product, &mut report);
        report.finish();
        return Ok(ExitCode::SUCCESS);
    }
    let calls = calls::run(&ground, &scale, &mut report);
    calls::run_long(&ground, &scale, &mut report);
    let instructions = instructions::run(&ground, &mut report);
    layers::run(&product, &mut report);
    commands::run(&ground, &scale, &mut report);
    let iteration = iterations::run(&ground, &scale, &mut report);
    sustained::table(&ground, if args.quick { 3 } else { sustained::ROUNDS }, &mut report);
    parts::run(&ground, &scale, &mut report);
    let startup = startup::run(&ground, &scale, &mut report)?;
    let memory = memory::run(&ground, &scale, &mut report)?;
    let disk = disk::run(&ground, &scale, &mut report);
    verdict::print(&Found { calls, instructions, iteration, startup, memory, disk }, &mut report);
    report.finish();
    Ok(ExitCode::SUCCESS)
}
