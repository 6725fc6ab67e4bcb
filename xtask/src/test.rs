//! `cargo xtask test`: everything that shows whether hetrace works.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;

use crate::{repo, torture};

/// Arguments of `test`.
#[derive(Parser)]
pub struct Args {
    /// Slow checks, too: loom, and foreign programs that `install-deps.sh --full` brings
    #[arg(long)]
    full: bool,
    /// Only the torture cases, in every way and as every user, for about ten minutes; writes
    /// target/torture/reliability.md
    #[arg(long, conflicts_with = "full")]
    torture: bool,
    /// Torture cases whose names contain this
    #[arg(long, requires = "torture", default_value = "")]
    only: String,
    /// Where the choices of the torture cases begin: what is printed of a run that failed
    #[arg(long, requires = "torture")]
    seed: Option<u64>,
}

/// Runs the steps in the order of how quickly they fail.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.torture {
        return torture::run(&args.only, args.seed);
    }
    let started = Instant::now();
    let steps: &[(&str, &[&str])] = &[
        ("formatting", &["fmt", "--all", "--check"]),
        ("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ("generated code is current", &["xtask", "codegen", "--check"]),
        ("rules of the tree", &["xtask", "tidy"]),
        ("unit and property tests", &["test", "--workspace", "--exclude", "hetrace-tests"]),
    ];
    for (what, arguments) in steps {
        step(what, arguments, &[])?;
    }
    for api in repo::apis()? {
        step("model", &["xtask", "model", &api], &[])?;
    }
    let build = repo::build_arguments()?;
    let build: Vec<&str> = build.iter().map(String::as_str).collect();
    step("build", &build, &[])?;
    step("end-to-end tests", &["test", "--release", "-p", "hetrace-tests"], &[])?;
    if args.full {
        let loom = [("RUSTFLAGS", "--cfg loom")];
        for package in ["hetrace-ring", "hetrace-interpose"] {
            let arguments = ["test", "--release", "-p", package, "--test", "loom"];
            step("every interleaving (loom)", &arguments, &loom)?;
        }
        let foreign = ["test", "--release", "-p", "hetrace-tests", "--", "--ignored"];
        step("foreign programs", &foreign, &[])?;
    }
    println!("all passed in {} s", started.elapsed().as_secs());
    Ok(ExitCode::SUCCESS)
}

/// Runs one `cargo` command, or fails with its name.
pub fn step(what: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    println!("==> {what}: cargo {}", arguments.join(" "));
    let status = Command::new("cargo")
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(repo::root())
        .status()?;
    if !status.success() {
        bail!("{what}: failed");
    }
    Ok(())
}
