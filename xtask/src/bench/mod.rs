//! `cargo xtask bench`: what tracing costs, and how fast traces are read.
//!
//! Each benchmark is a module with an `Args` struct and a `run` function.

mod analyze;
mod apis;
mod calls;
mod commands;
mod cuda;
mod disk;
mod ground;
mod inside;
mod instructions;
mod iterations;
mod layers;
mod memory;
mod numbers;
mod overhead;
mod parts;
mod preloaded;
mod programs;
mod report;
mod scale;
mod setting;
mod startup;
mod sustained;
mod system;
mod verdict;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Arguments of `bench`.
#[derive(Parser)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Time, instructions, memory and bytes that tracing adds, beside those of an LTTng-UST interposer
    Overhead(overhead::Args),
    /// A small OpenCL program's loop under sustained load, pinned and not, beside an LTTng-UST interposer
    Sustained(sustained::Args),
    /// Time, instructions and bytes that tracing adds to CUDA's calls, on a driver that does nothing
    Cuda(cuda::Args),
    /// Instructions of a call of each API, side by side, on libraries that do nothing
    Apis(apis::Args),
    /// What `run --inside` costs beside the device: launches on the host, rewriting of modules, and their cache
    Inside(inside::Args),
    /// What preloaded libraries cost a process that uses none of their APIs: none, one, some, all of them
    Preloaded(preloaded::Args),
    /// What the user waits for before and after the program, and of commands that read a small trace
    Startup(startup::Args),
    /// What tracing adds to real programs, beside what their reports say that it took
    Programs(programs::Args),
    /// What recording the operating system's events costs, beside perf
    System(system::Args),
    /// How fast a trace becomes an answer, and with how much memory, beside babeltrace2
    Analyze(analyze::Args),
}

/// Runs the benchmark that was asked for.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Overhead(args) => overhead::run(args),
        What::Sustained(args) => sustained::run(args),
        What::Cuda(args) => cuda::run(args),
        What::Apis(args) => apis::run(args),
        What::Inside(args) => inside::run(args),
        What::Preloaded(args) => preloaded::run(args),
        What::Startup(args) => startup::alone(args),
        What::Programs(args) => programs::run(args),
        What::System(args) => system::run(args),
        What::Analyze(args) => analyze::run(args),
    }
}
