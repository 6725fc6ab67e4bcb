//! `cargo xtask test --torture`: every torture case in every way of interposition, as root and
//! as an ordinary user, several times; and the table of `docs/reliability.md`.
//!
//! The cases are `tests/src/torture/cases/`, which the end-to-end tests run once each. What was
//! not as promised is printed with its seed: `--only CASE --seed N` repeats it.

mod mutation;
mod report;

use std::process::{Command, ExitCode};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use hetrace_tests::torture::{self, Case, Place, Row, User};

use crate::repo;
use crate::steps::{Lane, Outcome};

/// Runs the cases whose names contain `only`, and all else that the table shows.
pub fn run(only: &str, seed: Option<u64>) -> Result<ExitCode> {
    let built = Lane::FRONT.cargo(&repo::build_arguments()?, &[])?;
    ensure!(built == Outcome::Passed, "build: {built}");
    let seed = seed.unwrap_or_else(arbitrary);
    println!("==> torture: seed {seed}");
    let started = Instant::now();
    let mut rows: Vec<Row> = Vec::new();
    for case in torture::cases().iter().filter(|c| c.name.contains(only)) {
        rows.push(repeat(case, seed)?);
    }
    if only.is_empty() {
        rows.extend(mutation::rows()?);
    }
    let path = report::write(&rows, seed)?;
    let broken: Vec<&str> = rows.iter().filter(|row| row.broken > 0).map(|row| row.test.as_str()).collect();
    println!("{} tests in {} s: {}", rows.len(), started.elapsed().as_secs(), path.display());
    if !broken.is_empty() {
        println!("broken: {}", broken.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// All runs of one case.
fn repeat(case: &Case, seed: u64) -> Result<Row> {
    let mut row = Row::of(case);
    for place in places(case, &mut row)? {
        for way in case.ways() {
            for i in 0..case.long {
                let outcome = torture::run(case, place, *way, seed.wrapping_add(u64::from(i)));
                println!("{outcome}");
                row.add(&outcome);
            }
        }
    }
    Ok(row)
}

/// Who runs a case; a user that can't be had here is noted in the row.
fn places(case: &Case, row: &mut Row) -> Result<Vec<&'static Place>> {
    let mut places: Vec<&'static Place> = Vec::new();
    let users: &[User] =
        if case.ordinary_only { &[User::Ordinary] } else { &[User::Current, User::Ordinary] };
    for user in users {
        match Place::shared(*user) {
            // An ordinary user who runs this is both.
            Ok(place) if places.iter().any(|p| p.user == place.user) => {}
            Ok(place) => places.push(place),
            Err(reason) => row.skipped.push(reason),
        }
    }
    Ok(places)
}

fn arbitrary() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) % 1_000_000
}

/// A command's output, whatever its status.
fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let done = Command::new(program).args(arguments).current_dir(repo::root()).output();
    let done = done.with_context(|| program.to_owned())?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
