//! `cargo xtask bench preloaded`: what libraries of ours cost a process that uses none of their APIs.
//!
//! A program is started under `hetrace run` with so many of the preloaded libraries: an open one (a shell that could open
//! libraries), and a closed one (`true`), which gets the gate in their place. What their APIs require of the machine
//! is there: empty libraries, which nothing opens. Instructions are those of a process with all of them, the dynamic
//! loader's among them, and the launcher's own.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};

use super::ground::{Ground, make, product, succeeds};
use super::numbers::Samples;
use super::report::{Report, difference, number};
use super::setting::command;
use crate::repo;

/// Arguments of `bench preloaded`.
#[derive(Parser)]
pub struct Args {
    /// How often each number of libraries is measured, in turn; the least counts
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its libraries lie beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

/// Numbers of libraries that are measured, besides all.
const STEPS: &[usize] = &[0, 1, 4, 8];
/// Processes whose faults and times are added up.
const PROCESSES: &str = "200";

/// A number of libraries, and what was found with it.
struct Step {
    libraries: usize,
    folder: PathBuf,
    instructions: f64,
    /// Those of the launcher.
    launcher: f64,
    open: Cost,
    closed: Cost,
}

/// What processes of a program took.
#[derive(Default)]
struct Cost {
    faults: Samples,
    ms: Samples,
}

impl Cost {
    /// Starts a program again and again.
    fn measure(
        &mut self,
        ground: &Ground,
        required: &Path,
        folder: &Path,
        program: &[&dyn AsRef<std::ffi::OsStr>],
    ) -> Result<()> {
        let starts = ground.program("starts");
        let line: Vec<&dyn AsRef<std::ffi::OsStr>> = [&starts as &dyn AsRef<std::ffi::OsStr>, &PROCESSES]
            .into_iter()
            .chain(program.iter().copied())
            .collect();
        let out = under(ground, required, folder, &line)?;
        self.faults.add(value(&out.0, "faults ")?);
        self.ms.add(value(&out.0, "ms ")?);
        Ok(())
    }
}

/// Measures and prints everything.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make_system(&product)?;
    make("bench/programs", "build/starts").context("make -C bench/programs build/starts")?;
    let mut report = Report::new(args.json);
    report.title("What a process costs with libraries of APIs that it does not use");
    let required = ground.work.join("required");
    let (preloaded, others) = kinds(&ground, &required)?;
    report.line(&format!("preloaded, in this order: {}", names(&preloaded).join(", ")));

    let mut steps = Vec::new();
    for libraries in STEPS.iter().copied().filter(|n| *n < preloaded.len()).chain([preloaded.len()]) {
        let folder = ground.work.join(format!("with-{libraries}"));
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        for library in preloaded.iter().take(libraries).chain(&others) {
            symlink(library, folder.join(library.file_name().context("a library without a name")?))?;
        }
        let instructions = instructions(&ground, &required, &folder)?;
        let launcher = launcher(&ground, &required, &folder)?;
        steps.push(Step {
            libraries,
            folder,
            instructions,
            launcher,
            open: Cost::default(),
            closed: Cost::default(),
        });
    }
    for _ in 0..args.rounds.max(1) {
        for step in &mut steps {
            step.open.measure(&ground, &required, &step.folder, &[&"bash", &"-c", &":"])?;
            step.closed.measure(&ground, &required, &step.folder, &[&"true"])?;
        }
    }
    table(&steps, &mut report);
    report.finish();
    Ok(ExitCode::SUCCESS)
}

/// Makes a library with nothing in it.
pub fn empty_library(file: &Path) -> Result<()> {
    let mut compiler = Command::new("cc");
    if !compiler.args(["-shared", "-x", "c", "/dev/null", "-o"]).arg(file).status()?.success() {
        bail!("cc makes no empty library");
    }
    Ok(())
}

/// The libraries that are preloaded and those that are not, by their models; what the former require is made.
fn kinds(ground: &Ground, required: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    fs::create_dir(required).with_context(|| required.display().to_string())?;
    let empty = required.join("empty.so");
    empty_library(&empty)?;
    let (mut preloaded, mut others) = (Vec::new(), Vec::new());
    for library in &ground.libraries {
        let api = names(std::slice::from_ref(library)).concat();
        let file = repo::root().join("apis").join(&api).join("src/generated/model.json");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let model: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        let interpose = &model["interpose"];
        let comes_late =
            ["layer_variable", "injection_variable", "tools"].iter().any(|way| !interpose[*way].is_null());
        if comes_late {
            others.push(library.clone());
            continue;
        }
        let requires = match &interpose["requires"] {
            Value::Array(list) => list.first(),
            one => Some(one),
        };
        if let Some(name) = requires.and_then(Value::as_str) {
            let link = required.join(name);
            if !link.exists() {
                symlink(&empty, &link).with_context(|| link.display().to_string())?;
            }
        }
        preloaded.push(library.clone());
    }
    Ok((preloaded, others))
}

/// The names of the APIs of libraries.
fn names(libraries: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        stem.trim_start_matches("libhetrace_").to_owned()
    };
    libraries.iter().map(name).collect()
}

/// Runs a program under hetrace with the libraries of a folder. Returns what it and hetrace print.
fn under(
    ground: &Ground,
    required: &Path,
    folder: &Path,
    program: &[&dyn AsRef<std::ffi::OsStr>],
) -> Result<(String, String)> {
    run_by(&[], ground, required, folder, program)
}

/// The same, with another program that starts hetrace.
fn run_by(
    starter: &[&str],
    ground: &Ground,
    required: &Path,
    folder: &Path,
    program: &[&dyn AsRef<std::ffi::OsStr>],
) -> Result<(String, String)> {
    let trace = ground.work.join("trace");
    let _ = fs::remove_dir_all(&trace);
    let mut words: Vec<OsString> = starter.iter().map(OsString::from).collect();
    words.extend([ground.hetrace.clone().into(), "run".into(), "-o".into(), trace.into(), "--".into()]);
    words.extend(program.iter().map(|word| word.as_ref().to_owned()));
    let mut line = command(&words)?;
    line.env("LD_LIBRARY_PATH", required).env("HETRACE_LIBRARIES", folder);
    let output = line.output().with_context(|| ground.hetrace.display().to_string())?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{}: {err}", output.status);
    }
    Ok((out.into_owned(), err.into_owned()))
}

/// The number behind a word.
fn value(text: &str, word: &str) -> Result<f64> {
    let found = text.lines().find_map(|line| line.split_once(word)).map(|(_, number)| number.trim().parse());
    found
        .with_context(|| format!("no {word}in: {text}"))?
        .with_context(|| format!("no number behind {word}: {text}"))
}

/// Instructions of `true`; not a number where there is no valgrind.
fn instructions(ground: &Ground, required: &Path, folder: &Path) -> Result<f64> {
    if !succeeds("valgrind", &["--version"]) {
        return Ok(f64::NAN);
    }
    let program: [&dyn AsRef<std::ffi::OsStr>; 4] =
        [&"valgrind", &"--tool=callgrind", &"--callgrind-out-file=/dev/null", &"true"];
    value(&under(ground, required, folder, &program)?.1, "Collected : ")
}

/// Instructions of `hetrace run -- true` without those of `true`; not a number where there is no valgrind.
fn launcher(ground: &Ground, required: &Path, folder: &Path) -> Result<f64> {
    if !succeeds("valgrind", &["--version"]) {
        return Ok(f64::NAN);
    }
    let starter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    value(&run_by(&starter, ground, required, folder, &[&"true"])?.1, "Collected : ")
}

fn table(steps: &[Step], report: &mut Report) {
    let mut rows = Vec::new();
    let mut before: Option<&Step> = None;
    for step in steps {
        let each = |of: &dyn Fn(&Step) -> f64| {
            before.map_or(f64::NAN, |b| (of(step) - of(b)) / (step.libraries - b.libraries) as f64)
        };
        rows.push(vec![
            step.libraries.to_string(),
            number(step.instructions, 0),
            difference(each(&|s| s.instructions), 0),
            number(step.open.faults.min(), 1),
            difference(each(&|s| s.open.faults.min()), 1),
            number(step.open.ms.min(), 3),
            difference(each(&|s| s.open.ms.min()), 3),
            number(step.closed.faults.min(), 1),
            number(step.closed.ms.min(), 3),
            number(step.launcher, 0),
            difference(each(&|s| s.launcher), 0),
        ]);
        before = Some(step);
    }
    let head = [
        "preloaded",
        "instructions",
        "each more",
        "page faults",
        "each more",
        "user+system ms",
        "each more",
        "closed: page faults",
        "closed: ms",
        "launcher: instructions",
        "each more",
    ];
    report.table(&head, &rows);
    report.keep("preloaded", json!(rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_their_words() {
        let text = "faults 52.100\n==7== Collected : 133760\n";
        assert_eq!(value(text, "faults ").unwrap(), 52.1);
        assert_eq!(value(text, "Collected : ").unwrap(), 133_760.0);
        assert!(value(text, "ms ").is_err() && value("ms much", "ms ").is_err());
    }
}
