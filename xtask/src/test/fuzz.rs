//! The fuzz targets of `fuzz/`, built with AddressSanitizer and guided by coverage (libFuzzer).
//!
//! What `cargo fuzz` does, without it and with the stable toolchain: `RUSTC_BOOTSTRAP` lets the
//! sanitizer's option through, and the rest are options of LLVM. Inputs begin with `fuzz/corpus/`, which is
//! kept in the repository; what a run finds on the way is kept in `target/fuzz/corpus/`, and the input of
//! a crash in `target/fuzz/crashes/`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

use super::sanitize::{Sanitizer, TARGET};
use crate::repo;
use crate::steps::{Lane, Outcome, Step};

/// How long each target is run in an ordinary test: more than four minutes for all of them.
const SECONDS: u64 = 15;
/// Targets that run side by side: each takes one processor.
const BESIDE: usize = 2;
/// A single input that takes longer hangs, on however busy a machine.
const HANGS: &str = "-timeout=600";
/// Edges and comparisons are counted; the standard library and all crates are.
const FLAGS: &str = "-Zsanitizer=address -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

/// A build, and a step for each two targets; all steps take so many hours, if that is said.
pub fn steps<'s>(hours: Option<f64>) -> Result<Vec<Step<'s>>> {
    let targets = targets()?;
    let groups = targets.chunks(BESIDE);
    let each = hours.map_or(SECONDS, |h| (h * 3600.0 / groups.len() as f64).ceil() as u64);
    let mut steps = vec![Step::new("fuzz targets", build).behind()];
    for group in groups {
        let (name, group) = (format!("fuzz {}", group.join(", ")), group.to_vec());
        steps
            .push(Step::new(name, move |lane| run_beside(lane, &group, each)).after("fuzz targets").behind());
    }
    Ok(steps)
}

/// Runs targets side by side. One that fails keeps no other from running to its end.
fn run_beside(lane: &Lane, targets: &[String], seconds: u64) -> Result<Outcome> {
    let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
        let all: Vec<_> = targets.iter().map(|target| scope.spawn(|| run(lane, target, seconds))).collect();
        let ended = |run: thread::ScopedJoinHandle<'_, Result<Outcome>>| {
            run.join().unwrap_or_else(|_| Ok(Outcome::Failed("it panicked".to_owned())))
        };
        all.into_iter().map(ended).collect()
    });
    let mut failed = Vec::new();
    for (target, outcome) in targets.iter().zip(outcomes) {
        match outcome? {
            Outcome::Passed => {}
            other => failed.push(format!("{target}: {other}")),
        }
    }
    Ok(if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join("; ")) })
}

fn folder() -> PathBuf {
    repo::root().join("target/fuzz")
}

/// The names of the targets: each is a file of this name.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(repo::root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|s| s.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn build(lane: &Lane) -> Result<Outcome> {
    if let Some(lacks) = Sanitizer::Address.lacks()? {
        return Ok(Outcome::Skipped(lacks));
    }
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "--release",
        "--bins",
        "--locked",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target",
        TARGET,
    ]);
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", folder());
    lane.status(cargo.current_dir(repo::root()))
}

fn run(lane: &Lane, target: &str, seconds: u64) -> Result<Outcome> {
    let found = folder().join("corpus").join(target);
    let crashes = folder().join("crashes").join(target);
    for folder in [&found, &crashes] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let program = folder().join(TARGET).join("release").join(target);
    let mut fuzzer = Command::new(program);
    // Written first: where new inputs go. Those of the repository are only read.
    fuzzer.arg(&found).arg(repo::root().join("fuzz/corpus").join(target));
    fuzzer.args([format!("-max_total_time={seconds}"), format!("-artifact_prefix={}/", crashes.display())]);
    fuzzer.args([HANGS, "-verbosity=0", "-print_final_stats=1", "-rss_limit_mb=4096"]);
    lane.status(fuzzer.current_dir(repo::root()))
}
