//! `cargo xtask demo`: from a fresh checkout to a printed answer.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::repo;

/// Arguments of `demo`.
#[derive(Parser)]
pub struct Args {
    /// The program to trace, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, default_values = ["clpeak", "--kernel-latency"])]
    program: Vec<String>,
}

/// Installs what is missing, builds, and traces a real OpenCL program.
pub fn run(args: &Args) -> Result<ExitCode> {
    step(Command::new(repo::root().join("scripts/install-deps.sh")))?;
    let build = repo::build_arguments()?;
    let build: Vec<&str> = build.iter().map(String::as_str).collect();
    step(cargo(&build))?;
    let hetrace = repo::root().join("target/release/hetrace");
    println!("==> {} run -- {}", hetrace.display(), args.program.join(" "));
    let status = Command::new(hetrace).args(["run", "--"]).args(&args.program).status()?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments);
    command
}

fn step(mut command: Command) -> Result<()> {
    command.current_dir(repo::root());
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}
