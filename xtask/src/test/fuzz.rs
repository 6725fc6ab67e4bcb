//! The fuzz targets of `fuzz/`, built with AddressSanitizer and guided by coverage (libFuzzer).
//!
//! What `cargo fuzz` does, without it and with the stable toolchain: `RUSTC_BOOTSTRAP` lets the
//! sanitizer's option through, and the rest are options of LLVM. Inputs begin with `fuzz/corpus/`, which is
//! kept in the repository; what a run finds on the way is kept in `target/fuzz/corpus/`, and the input of
//! a crash in `target/fuzz/crashes/`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::sanitize::{Sanitizer, TARGET};
use super::steps::{Outcome, Step, status};
use crate::repo;

/// How long each target is run in an ordinary test.
const SECONDS: u64 = 8;
/// A single input that takes longer hangs, on however busy a machine.
const HANGS: &str = "-timeout=600";
/// Edges and comparisons are counted; the standard library and all crates are.
const FLAGS: &str = "-Zsanitizer=address -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

/// A build, and a step for each target; together they run for so many hours, if that is said.
pub fn steps<'s>(hours: Option<f64>) -> Result<Vec<Step<'s>>> {
    let targets = targets()?;
    let each = hours.map_or(SECONDS, |h| (h * 3600.0 / targets.len() as f64).ceil() as u64);
    let mut steps = vec![Step::new("fuzz targets", build)];
    for target in targets {
        steps.push(Step::new(format!("fuzz {target}"), move || run(&target, each)).after("fuzz targets"));
    }
    Ok(steps)
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

fn build() -> Result<Outcome> {
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
    status(cargo.current_dir(repo::root()))
}

fn run(target: &str, seconds: u64) -> Result<Outcome> {
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
    status(fuzzer.current_dir(repo::root()))
}
