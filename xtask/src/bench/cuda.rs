//! `cargo xtask bench cuda`: what tracing CUDA costs, on a driver that does nothing, so
//! that what is measured is our own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use serde_json::json;

use super::ground::{Ground, Pin, product};
use super::instructions::per_call;
use super::report::{Report, difference, number};
use super::setting::{Measured, Setting, run as run_in};

/// Arguments of `bench cuda`.
#[derive(Parser)]
pub struct Args {
    /// Processes per setting; each measures several loops
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its CUDA libraries lie beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

/// What is built before, and put beside the copy that is measured.
const LIBRARIES: &[&str] = &["libhetrace_cuda.so", "libhetrace_cudart.so"];

/// Calls in a loop: their records fit into a ring.
const LOOP: u32 = 10_000;
/// Rounds of each loop in one process.
const ROUNDS: u32 = 10;
/// Calls before each loop.
const WARM: u32 = 500;

/// The loops of the program: their names, the C functions, and what they do.
const LOOPS: &[(&str, &str, &str)] = &[
    ("same_attribute", "get_attribute", "cuDeviceGetAttribute, the same again and again"),
    ("attributes", "get_attributes", "cuDeviceGetAttribute, another each time"),
    ("current", "get_current", "cuCtxGetCurrent"),
    ("device", "get_device", "cudaGetDevice, with cuCtxGetCurrent inside"),
    ("kernel", "launch", "cuLaunchKernel"),
];

const NOTHING: Setting = Setting::Hetrace(
    "session, nothing recorded",
    &["--interpose", "preload", "--buffer", "8192", "--exclude", "*", "--no-device"],
);
const NO_DEVICE: Setting = Setting::Hetrace(
    "default, no device",
    &["--interpose", "preload", "--buffer", "8192", "-m", "default", "--no-device"],
);
const SAMPLED: Setting = Setting::Hetrace(
    "default, sampled:64",
    &["--interpose", "preload", "--buffer", "8192", "-m", "default", "--device-times", "sampled:64"],
);
const EVENTS: Setting = Setting::Hetrace(
    "default, events",
    &["--interpose", "preload", "--buffer", "8192", "-m", "default", "--device-times", "events"],
);
const FULL: Setting = Setting::Hetrace(
    "full, no device",
    &["--interpose", "preload", "--buffer", "8192", "-m", "full", "--no-device"],
);

const SETTINGS: &[Setting] = &[Setting::Bare, Setting::Preloaded, NOTHING, NO_DEVICE, SAMPLED, EVENTS, FULL];

/// One function alone, to see its bytes.
const ALONE: &[(&str, Setting)] = &[
    ("cuDeviceGetAttribute, recorded", Setting::Hetrace("alone", &alone("cuDeviceGetAttribute", "full"))),
    ("cuCtxGetCurrent, folded", Setting::Hetrace("alone", &alone("cuCtxGetCurrent", "default"))),
    ("cudaGetDevice", Setting::Hetrace("alone", &alone("cudaGetDevice", "full"))),
    ("cuLaunchKernel", Setting::Hetrace("alone", &alone("cuLaunchKernel", "full"))),
];

const fn alone(function: &'static str, mode: &'static str) -> [&'static str; 7] {
    ["--interpose", "preload", "--no-device", "-m", mode, "--include", function]
}

/// How often the program calls each of them.
const CALLS_OF: &[u32] = &[2, 2, 1, 1];

/// The targets: setting, loop, nanoseconds.
const TARGETS: &[(&str, Setting, &str, f64)] = &[
    ("a recorded call adds", FULL, "attributes", 45.0),
    ("a recorded call adds, the same again and again", FULL, "same_attribute", 45.0),
    ("a folded call adds", NO_DEVICE, "same_attribute", 25.0),
    ("without a session a call adds", Setting::Preloaded, "same_attribute", 1.5),
    ("a call that is not recorded adds", NOTHING, "same_attribute", 1.5),
];

/// Measures and prints everything. A missed target is reported and is no failure.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make_cuda(&product, LIBRARIES)?;
    let mut report = Report::new(args.json);
    let machine = ground.machine();
    report.title("Machine");
    for (key, value) in machine.as_object().into_iter().flatten() {
        report.line(&format!("{key}: {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    report.keep("machine", machine);

    let keys: Vec<String> = LOOPS.iter().map(|(key, ..)| (*key).to_owned()).collect();
    let measured =
        Measured::new(&ground, SETTINGS, args.rounds.max(1) as usize, &program(&ground, ROUNDS), &keys);
    times(&measured, args.rounds, &mut report);
    instructions(&ground, &mut report);
    bytes(&ground, &mut report);
    verdict(&measured, &mut report);
    report.finish();
    Ok(ExitCode::SUCCESS)
}

fn program(ground: &Ground, rounds: u32) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![ground.program("cuda_loop").into()];
    words.extend(["-n", &LOOP.to_string(), "-r", &rounds.to_string(), "-p", "30"].map(OsString::from));
    words
}

fn times(measured: &Measured, rounds: u32, report: &mut Report) {
    report.title("CUDA on a driver that does nothing, ns per call");
    report.line(&format!(
        "loops of {LOOP} calls; each sample is the median of {ROUNDS} loops in one process, {rounds} \
         processes per setting, interleaved"
    ));
    let mut rows = Vec::new();
    for (key, _, what) in LOOPS {
        for setting in SETTINGS {
            let of = measured.of(*setting, key);
            rows.push(vec![
                format!("{what}: {}", setting.name()),
                number(of.median(), 2),
                number(of.sd(), 2),
                number(of.min(), 2),
                difference(measured.added(*setting, key), 2),
                measured.lost(*setting).map_or_else(|| "-".to_owned(), |l| number(l, 0)),
            ]);
        }
    }
    report.table(&["call", "median", "sd", "min", "added", "records lost"], &rows);
    for (setting, why) in &measured.failed {
        report.line(&format!("{} failed: {why}", setting.name()));
    }
    report.keep("cuda", measured.json());
}

fn instructions(ground: &Ground, report: &mut Report) {
    report.title("Instructions per call (callgrind; with the loop around it)");
    let functions: Vec<&str> = LOOPS.iter().map(|(_, function, _)| *function).collect();
    let program = program(ground, 1);
    let mut head = vec!["call"];
    let mut columns = Vec::new();
    for setting in SETTINGS {
        match per_call(ground, *setting, &program, &functions, f64::from(LOOP + WARM)) {
            Ok(counts) => {
                head.push(setting.name());
                columns.push(counts);
            }
            Err(error) => report.line(&format!("{} failed: {error:#}", setting.name())),
        }
    }
    let rows: Vec<Vec<String>> = LOOPS
        .iter()
        .enumerate()
        .map(|(i, (key, ..))| {
            let mut row = vec![(*key).to_owned()];
            row.extend(columns.iter().map(|c| number(c.get(i).copied().unwrap_or(f64::NAN), 1)));
            row
        })
        .collect();
    report.table(&head, &rows);
    report.keep("cuda_instructions", json!({ "settings": head, "rows": rows }));
}

fn bytes(ground: &Ground, report: &mut Report) {
    report.title("Bytes in the ring per call");
    let program = program(ground, 1);
    let mut rows = Vec::new();
    for ((what, setting), loops) in ALONE.iter().zip(CALLS_OF) {
        match run_in(ground, *setting, Pin::No, &program, |_| Ok(())) {
            Ok(ran) => {
                let calls = f64::from((LOOP + WARM) * loops);
                rows.push(vec![
                    (*what).to_owned(),
                    number(ran.bytes / calls, 2),
                    number(ran.records / calls, 2),
                ]);
            }
            Err(error) => report.line(&format!("{what} failed: {error:#}")),
        }
    }
    report.table(&["call", "bytes", "records"], &rows);
    report.keep("cuda_bytes", json!(rows));
}

fn verdict(measured: &Measured, report: &mut Report) {
    report.title("Verdict");
    report.line("added = median less the bare program's median of the same run");
    let mut rows = Vec::new();
    for (what, setting, key, most) in TARGETS {
        let added = measured.added(*setting, key);
        let verdict = match () {
            () if !added.is_finite() => "not measured",
            () if added <= *most => "PASS",
            () => "FAIL",
        };
        rows.push(vec![
            (*what).to_owned(),
            format!("{} ns", number(added, 2)),
            format!("{} ns", number(*most, 2)),
            verdict.to_owned(),
        ]);
        let lost = measured.lost(*setting).unwrap_or_default();
        if lost > 0.0 {
            report.line(&format!("{lost} records were lost in {}: its times are too good", setting.name()));
        }
    }
    report.table(&["target", "found", "at most", ""], &rows);
    report.keep("cuda_verdict", json!(rows));
}
