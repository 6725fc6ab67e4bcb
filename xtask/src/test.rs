//! `cargo xtask test`: everything that shows whether hetrace works.
//!
//! The order is that of how quickly steps fail, but for what others wait for; all are run, and the end says what became
//! of each. Steps are in [`crate::steps`]; what takes long is behind `--full`.

mod fuzz;
mod sanitize;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::steps::{Lane, Outcome, Step, run_all};
use crate::{repo, torture};

/// Arguments of `test`.
#[derive(Parser)]
pub struct Args {
    /// Slow checks, too: all readers with sanitizers and under valgrind, the ring under Miri, our
    /// libraries with sanitizers, and foreign programs that `install-deps.sh --full` brings
    #[arg(long)]
    full: bool,
    /// Hours of fuzzing, over all targets together, instead of some seconds for each
    #[arg(long, requires = "full", value_name = "N")]
    hours: Option<f64>,
    /// Only the steps whose names contain this, and what these need
    #[arg(long, default_value = "", value_name = "TEXT")]
    step: String,
    /// Only the torture cases, in every way and as every user, for about ten minutes; writes
    /// target/torture/reliability.md
    #[arg(long, conflicts_with_all = ["full", "step"])]
    torture: bool,
    /// Torture cases whose names contain this
    #[arg(long, requires = "torture", default_value = "")]
    only: String,
    /// Where the choices of the torture cases begin: what is printed of a run that failed
    #[arg(long, requires = "torture")]
    seed: Option<u64>,
}

/// Runs all steps that are asked for.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.torture {
        return torture::run(&args.only, args.seed);
    }
    let mut steps = ordinary()?;
    steps.extend(fuzz::steps(args.hours)?);
    if args.full {
        steps.extend(slow());
    }
    let summary = run_all(steps, &args.step);
    ensure!(!summary.is_empty(), "no step's name contains {:?}", args.step);
    println!("\n{summary}");
    Ok(if summary.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn ordinary<'s>() -> Result<Vec<Step<'s>>> {
    let mut steps = vec![
        // The longest: the end-to-end tests wait for it.
        Step::cargo("build", &repo::build_arguments()?).behind(),
        Step::cargo("formatting", &["fmt", "--all", "--check"]),
        Step::cargo("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        Step::cargo("generated code is current", &["xtask", "codegen", "--check"]),
        Step::cargo("rules of the tree", &["xtask", "tidy"]),
        Step::cargo(
            "unit and property tests",
            &["test", "--workspace", "--exclude", "hetrace-tests", "--no-fail-fast"],
        ),
        Step::new("every interleaving (loom)", interleavings).behind(),
    ];
    for api in repo::apis()? {
        steps.push(Step::cargo(format!("model of {api}"), &["xtask", "model", &api]));
    }
    steps.push(sanitize::unit_tests());
    let own = std::env::current_exe()?.display().to_string();
    // They drive what was built: linking each of them with link-time optimization takes longer than they do.
    let end_to_end = ["test", "-p", "hetrace-tests", "--no-fail-fast"];
    let run = move |lane: &Lane| lane.cargo(&end_to_end, &[("HETRACE_XTASK", own.as_str())]);
    steps.push(Step::new("end-to-end tests", run).after("build"));
    steps.push(Step::cargo("packages install and run", &["xtask", "dist", "--native"]).after("build"));
    Ok(steps)
}

fn slow<'s>() -> Vec<Step<'s>> {
    let mut steps = vec![
        Step::cargo(
            "foreign programs",
            &["test", "-p", "hetrace-tests", "--no-fail-fast", "--", "--ignored", "--skip", "instrumented"],
        )
        .after("build"),
        // Brings a linker from PyPI.
        Step::cargo("packages for old machines install and run", &["xtask", "dist"]),
    ];
    steps.extend(sanitize::slow_tests());
    steps
}

/// Explores what threads do to each other, in seconds: linking with link-time optimization would take longer. In a folder
/// of its own, since the flag would have everything else built again.
fn interleavings(lane: &Lane) -> Result<Outcome> {
    let target = repo::root().join("target/loom");
    let target = target.to_str().context("the path of the repository is not text")?;
    lane.cargo(
        &["test", "--release", "-p", "hetrace-ring", "-p", "hetrace-interpose", "--test", "loom*"],
        &[("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", target), ("CARGO_PROFILE_RELEASE_LTO", "off")],
    )
}
