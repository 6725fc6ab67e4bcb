//! `cargo xtask bench programs`: what tracing costs real programs, bare and traced in turn, and what the report
//! of their traces says of it.
//!
//! `hetrace cost` measures each; here is which programs, their own figures, and what they have in common.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Map, Value, json};

use super::ground::{Ground, product, succeeds};
use super::numbers::Samples;
use super::report::{Report, difference, number};
use super::setting::command;

/// Arguments of `bench programs`.
#[derive(Parser)]
pub struct Args {
    /// Rounds of each program: bare, bare again and traced in each
    #[arg(long, default_value_t = 10)]
    runs: u32,
    /// Modes of `hetrace run`, separated by commas
    #[arg(long, default_value = "default")]
    mode: String,
    /// Budgets of `hetrace run --max-overhead`, separated by commas; `off` is none
    #[arg(long, default_value = "off,2%")]
    max_overhead: String,
    /// Only programs with this in their name
    #[arg(long)]
    only: Option<String>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its OpenCL library lies beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<std::path::PathBuf>,
}

/// A program, and what it does.
struct Program {
    name: &'static str,
    words: Vec<OsString>,
    /// How the lines begin that have its own figures.
    figures: &'static [&'static str],
}

/// What people run: by others, and by us where those would need data or hours.
fn programs(ground: &Ground) -> Vec<Program> {
    let own = |name: &'static str, file: &str, arguments: &[&str], figures| {
        let program = std::iter::once(ground.program(file).into());
        Program { name, words: program.chain(arguments.iter().map(OsString::from)).collect(), figures }
    };
    let others = |name: &'static str, words: &[&str], figures| Program {
        name,
        words: words.iter().map(OsString::from).collect(),
        figures,
    };
    let all = [
        others("clpeak, launches", &["clpeak", "-p", "0", "--kernel-latency"], &["Kernel launch latency"]),
        others("clinfo", &["clinfo"], &[]),
        own(
            "launches in batches",
            "async_loop",
            &["-n", "300", "-r", "10", "-p", "0"],
            &["kernel_batch.median"],
        ),
        own(
            "iterations, 10x10",
            "iteration",
            &["-n", "300", "-r", "30", "-p", "0", "10", "10"],
            &["iteration."],
        ),
        own("cheap calls", "sync_loop", &["-n", "20000", "-r", "10", "-p", "0"], &["clSetKernelArg.median"]),
        own("500 threads", "hold_threads", &["500", "500", "20"], &[]),
        own("allocations", "allocations", &["6000"], &[]),
    ];
    all.into_iter()
        .filter(|p| succeeds("sh", &["-c", &format!("command -v {}", p.words[0].display())]))
        .collect()
}

/// Measures all programs.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make_programs(&product)?;
    let mut report = Report::new(args.json);
    report.title("Programs: what tracing adds");
    report.line(&format!(
        "{} rounds each of bare, bare again and traced, in an order that moves on; medians of differences to the bare \
         run of the same round, [interval by ranks]; processor: time that the program took of processors, which other \
         programs disturb least; stated: what the report says that tracing took in all threads, and as a part of what \
         lifetime and processor time have more",
        args.runs
    ));
    let mut kept = Map::new();
    let mut rows = Vec::new();
    let mut percents: BTreeMap<String, [Samples; 3]> = BTreeMap::new();
    let mut parts = Vec::new();
    let wanted = |p: &Program| args.only.as_ref().is_none_or(|part| p.name.contains(part.as_str()));
    for program in programs(&ground).into_iter().filter(wanted) {
        let mut measured = cost(&ground, args, &program)?;
        let again = measured.get("bare_again").cloned().unwrap_or_default();
        rows.push(row(&format!("{}, bare again", program.name), &again, &mut percents, "bare again"));
        for setting in measured["settings"].as_array().cloned().unwrap_or_default() {
            let options = setting["options"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let shown = options.filter(|o| !o.starts_with("--trace")).collect::<Vec<_>>().join(" ");
            let name = shown.replace("--mode=", "").replace("--max-overhead=", "≤ ");
            rows.push(row(&format!("{}, {name}", program.name), &setting, &mut percents, &name));
            parts.push(parts_of(&format!("{}, {name}", program.name), &setting));
        }
        if !program.figures.is_empty() {
            measured["figures"] = figures(&ground, args, &program)?;
        }
        kept.insert(program.name.to_owned(), measured);
    }
    report.table(
        &[
            "program",
            "wall, ms",
            "%",
            "interval",
            "lifetime, ms",
            "%",
            "interval",
            "processor, ms",
            "%",
            "interval",
            "stated, ms",
            "of lifetime",
            "of processor",
        ],
        &rows,
    );
    report.title("What is stated, ms: medians of its parts");
    let names = PARTS.map(|(_, name)| name);
    report.table(&[&["program", "calls"][..], &names[..]].concat(), &parts);
    summary(&mut report, &percents);
    show_figures(&report, &kept);
    report.keep("programs", Value::Object(kept));
    report.finish();
    Ok(ExitCode::SUCCESS)
}

/// What `hetrace cost` finds.
fn cost(ground: &Ground, args: &Args, program: &Program) -> Result<Value> {
    let mut words: Vec<OsString> = vec![ground.hetrace.clone().into()];
    words.extend(["cost", "--json", "--with=--trace=opencl", "--runs"].map(OsString::from));
    words.extend([args.runs.to_string().into(), "--mode".into(), args.mode.clone().into()]);
    words.extend(["--max-overhead".into(), args.max_overhead.clone().into(), "--".into()]);
    words.extend(program.words.iter().cloned());
    let out = command(&words)?.stdin(Stdio::null()).output().context("hetrace cost")?;
    if !out.status.success() {
        bail!("{}: {}: {}", program.name, out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

fn row(title: &str, of: &Value, percents: &mut BTreeMap<String, [Samples; 3]>, key: &str) -> Vec<String> {
    let at = |path: &str| of.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let mut cells = vec![title.to_owned()];
    for (kind, samples) in KINDS.iter().zip(percents.entry(key.to_owned()).or_default()) {
        let ms = |end: &str| at(&format!("/{kind}/added/{end}_ns")) / 1e6;
        let percent = at(&format!("/{kind}/percent"));
        samples.add(percent);
        cells.push(difference(ms("median"), 2));
        cells.push(difference(percent, 1));
        cells.push(format!("[{}, {}]", difference(ms("low"), 1), difference(ms("high"), 1)));
    }
    let stated = at("/stated_ns");
    cells.push(number(stated / 1e6, 2));
    for kind in ["lifetime", "processor"] {
        cells.push(number(stated / at(&format!("/{kind}/added/median_ns")), 2));
    }
    cells
}

/// Times of a run that are compared.
const KINDS: [&str; 3] = ["wall", "lifetime", "processor"];

/// Parts of what a report states beside that of calls: members, and what they are called.
const PARTS: [(&str, &str); 7] = [
    ("timing_ns", "timing"),
    ("collecting_ns", "collecting"),
    ("driver_ns", "driver"),
    ("loading_ns", "libraries"),
    ("setup_ns", "memory"),
    ("collector_ns", "collector"),
    ("collector_calls_ns", "calibrated"),
];

/// The parts of what was stated, in the middle of all runs.
fn parts_of(title: &str, setting: &Value) -> Vec<String> {
    let stated = setting["stated"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |row: &Value, part: &str| row[part].as_f64().unwrap_or(0.0) / 1e6;
    let median = |value: &dyn Fn(&Value) -> f64| {
        let mut samples = Samples::default();
        stated.iter().for_each(|row| samples.add(value(row)));
        number(samples.median(), 3)
    };
    let besides = |row: &Value| PARTS.iter().map(|(part, _)| of(row, part)).sum::<f64>();
    let calls = median(&|row| of(row, "total_ns") - besides(row));
    let parts = PARTS.iter().map(|(part, _)| median(&|row| of(row, part)));
    [title.to_owned(), calls].into_iter().chain(parts).collect()
}

/// Means and medians over all programs.
fn summary(report: &mut Report, percents: &BTreeMap<String, [Samples; 3]>) {
    report.title("Over all programs, % of bare");
    let rows: Vec<Vec<String>> = percents
        .iter()
        .map(|(name, kinds)| {
            let of = |s: &Samples| [difference(s.mean(), 1), difference(s.median(), 1)];
            std::iter::once(name.clone()).chain(kinds.iter().flat_map(of)).collect()
        })
        .collect();
    report
        .table(&["", "wall, mean", "median", "lifetime, mean", "median", "processor, mean", "median"], &rows);
    let json = percents.iter().map(|(name, kinds)| {
        let of = KINDS.iter().zip(kinds).map(|(kind, samples)| (format!("{kind}_percent"), samples.json()));
        (name.clone(), Value::Object(of.collect()))
    });
    report.keep("over_all", Value::Object(json.collect()));
}

/// What the program itself prints of its speed, bare and traced in turn.
fn figures(ground: &Ground, args: &Args, program: &Program) -> Result<Value> {
    let trace = ground.work.join("trace");
    let mut traced: Vec<OsString> = vec![ground.hetrace.clone().into()];
    traced.extend(["run", "-q", "--trace=opencl", "-o"].map(OsString::from));
    traced.extend([trace.clone().into(), "--".into()]);
    traced.extend(program.words.iter().cloned());
    let mut found: BTreeMap<String, [Samples; 2]> = BTreeMap::new();
    for round in 0..args.runs as usize {
        for turn in 0..2 {
            let which = (round + turn) % 2;
            let words = if which == 0 { &program.words } else { &traced };
            let out = command(words)?.stdin(Stdio::null()).output()?;
            let _ = std::fs::remove_dir_all(&trace);
            for (key, value) in values(&String::from_utf8_lossy(&out.stdout), program.figures) {
                found.entry(key).or_default()[which].add(value);
            }
        }
    }
    let json = found
        .iter()
        .map(|(key, [bare, traced])| (key.clone(), json!({ "bare": bare.json(), "traced": traced.json() })));
    Ok(Value::Object(json.collect()))
}

/// The figures in what a program prints: `key value`, or `key : value unit`.
fn values(text: &str, keys: &[&str]) -> Vec<(String, f64)> {
    let wanted = |line: &&str| keys.iter().any(|key| line.starts_with(key));
    let pair = |line: &str| {
        let at = line.find([':', ' ']).filter(|_| !line.contains(':')).or_else(|| line.find(':'))?;
        let (key, rest) = line.split_at(at);
        let value = rest.trim_start_matches([':', ' ']).split_whitespace().next()?;
        Some((key.trim().to_owned(), value.parse().ok()?))
    };
    text.lines().map(str::trim).filter(wanted).filter_map(pair).collect()
}

fn show_figures(report: &Report, kept: &Map<String, Value>) {
    let mut rows = Vec::new();
    for (program, measured) in kept {
        for (key, figure) in measured["figures"].as_object().into_iter().flatten() {
            let median = |which: &str| figure[which]["median"].as_f64().unwrap_or(f64::NAN);
            let (bare, traced) = (median("bare"), median("traced"));
            rows.push(vec![
                format!("{program}: {key}"),
                number(bare, 2),
                number(traced, 2),
                difference(100.0 * (traced - bare) / bare, 1),
            ]);
        }
    }
    if !rows.is_empty() {
        report.title("The programs' own figures, medians");
        report.table(&["", "bare", "traced", "%"], &rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_what_is_stated() {
        let row = json!({ "total_ns": 9e6, "timing_ns": 1e6, "setup_ns": 3e6 });
        let cells = parts_of("p", &json!({ "stated": [row] }));
        let expected = ["p", "5.000", "1.000", "0.000", "0.000", "0.000", "3.000", "0.000", "0.000"];
        assert_eq!(cells, expected);
    }

    #[test]
    fn figures_of_both_forms_are_read() {
        let text =
            "  Kernel launch latency : 61.55 us\nkernel_batch.median 812.5\nkernel_batch.sd 3\nother 1\n";
        let found = values(text, &["Kernel launch", "kernel_batch.median"]);
        let expected = [("Kernel launch latency", 61.55), ("kernel_batch.median", 812.5)];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
        assert_eq!(values("Kernel launch latency : fast", &["Kernel"]), []);
    }
}
