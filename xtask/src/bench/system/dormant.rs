//! Dormant everywhere: what programs pay that load all libraries and are never recorded, in instructions, which do not
//! depend on what else the machine does.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Map, json};

use super::Args;
use crate::bench::ground::{self, Ground, output, succeeds};
use crate::bench::numbers::Samples;
use crate::bench::report::{Report, difference, number};
use crate::bench::setting::command;
use crate::repo;

/// Rounds at most: such runs are slow, and the counts hardly differ.
const ROUNDS: usize = 2;
/// The largest ratio.
const GOAL: f64 = 1.005;
/// Lines that are sorted.
const LINES: u32 = 300_000;

/// Words before a program that let it load all libraries, as `hetrace env` has a shell do it.
pub fn words(ground: &Ground) -> Result<Vec<OsString>> {
    let script = format!("eval \"$('{}' env)\"; env", ground.hetrace.display());
    let path = std::env::var("PATH").context("a path")?;
    let all = output("env", &["-i", &format!("PATH={path}"), "sh", "-c", &script]).unwrap_or_default();
    let ours = |line: &&str| {
        let name = line.split('=').next().unwrap_or_default();
        !["PWD", "PATH", "_", "SHLVL", "OLDPWD"].contains(&name)
    };
    let variables: Vec<OsString> = all.lines().filter(ours).map(OsString::from).collect();
    if variables.is_empty() {
        bail!("`hetrace env` has no variables for a program to start dormant");
    }
    Ok(std::iter::once("env".into()).chain(variables).collect())
}

/// Counts and prints the table.
pub fn run(ground: &Ground, args: &Args, report: &mut Report) -> Result<()> {
    report.title("Dormant: instructions of whole programs, in thousands (callgrind)");
    if !succeeds("valgrind", &["--version"]) {
        report.line("skipped: valgrind is not installed");
        return Ok(());
    }
    ground::make("tests/programs", "build/linked").context("make -C tests/programs build/linked")?;
    let lines = ground.work.join("lines");
    write_lines(&lines)?;
    let linked = repo::root().join("tests/programs/build/linked").into_os_string();
    let sort = ["sort", "--parallel=1", "-o", "/dev/null"].map(OsString::from);
    let programs: [(&str, Vec<OsString>); 4] = [
        ("nothing (true)", vec!["true".into()]),
        ("OpenCL, 1,000 iterations of 10x10", vec![linked, "1000".into()]),
        ("sort, 300,000 lines", sort.into_iter().chain([lines.clone().into()]).collect()),
        ("sha256sum of them", vec!["sha256sum".into(), lines.into()]),
    ];
    let dormant = words(ground)?;
    let none = Vec::new();
    let mut rows = Vec::new();
    let mut kept = Map::new();
    for (name, program) in programs {
        // Once before all: PoCL compiles the kernel in it, and finds it in its cache afterwards.
        count(ground, &none, &program).with_context(|| name.to_owned())?;
        // The last is the same as the first: the noise.
        let mut counts: [Samples; 3] = Default::default();
        for _ in 0..args.rounds.min(ROUNDS) {
            for (variables, samples) in [&none, &dormant, &none].into_iter().zip(&mut counts) {
                samples.add(count(ground, variables, &program).with_context(|| name.to_owned())?);
            }
        }
        let [bare, loaded, again] = counts.each_ref().map(Samples::median);
        // What does nothing shows what loading takes; a share of nothing says nothing.
        let goal = if program.len() > 1 { number(GOAL, 3) } else { String::new() };
        rows.push(vec![
            name.to_owned(),
            number(bare / 1e3, 0),
            difference((loaded - bare) / 1e3, 0),
            number(loaded / bare, 4),
            number(again / bare, 4),
            goal,
        ]);
        kept.insert(name.to_owned(), json!({ "bare": bare, "dormant": loaded, "again": again }));
    }
    report.table(&["", "bare", "dormant", "ratio", "bare again", "goal, at most"], &rows);
    report.line("valgrind starts the programs itself, so that what the dynamic linker does is counted, too");
    report.keep("dormant", kept.into());
    Ok(())
}

/// Numbers in no order.
fn write_lines(path: &Path) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut state = 1u32;
    for _ in 0..LINES {
        // Numerical Recipes' generator: the same lines each time.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        writeln!(file, "{state}")?;
    }
    file.flush()?;
    Ok(())
}

/// Returns the instructions of a program, all threads together.
fn count(ground: &Ground, variables: &[OsString], program: &[OsString]) -> Result<f64> {
    let mut words = variables.to_vec();
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(ground.work.join("callgrind"));
    words.extend(["valgrind".into(), "--tool=callgrind".into(), file]);
    words.extend_from_slice(program);
    let out = command(&words)?.env("LC_ALL", "C").stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        bail!("{}: {}", out.status, said.trim());
    }
    collected(&said).context("callgrind said nothing of instructions")
}

/// Reads callgrind's `==PID== Collected : N`.
fn collected(said: &str) -> Option<f64> {
    said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrind_says_how_many() {
        let said = "==12== Events    : Ir\n==12== Collected : 141562\n==12== \n";
        assert_eq!(collected(said), Some(141_562.0));
        assert_eq!(collected("==12== Events    : Ir\n"), None);
    }
}
