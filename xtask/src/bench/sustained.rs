//! The article's iteration under sustained load: thousands in a row, at the priority that programs
//! have, on one processor and on all. The tables of [`super::iterations`] have bursts with pauses,
//! at real-time priority, which no driver's thread interrupts.
//!
//! A driver with threads of its own has two ways to run such a loop, and a scheduler chooses between
//! them: its worker interrupts the program when it is woken, or waits until the program waits. A
//! microsecond more or less between two waits changes that choice, so a mean is no sum of parts here. Switches between
//! threads are shown beside it: from them it is seen which of the two it was.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use serde_json::{Map, json};

use super::ground::{Ground, Pin, product};
use super::numbers::Samples;
use super::report::{Report, difference, number};
use super::setting::{self, DEFAULT, Setting};

/// Arguments of `bench sustained`.
#[derive(Parser)]
pub struct Args {
    /// Runs of each setting, in turn
    #[arg(long, default_value_t = ROUNDS)]
    rounds: usize,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its OpenCL library lies beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

/// Measures this alone.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make(&product)?;
    let mut report = Report::new(args.json);
    if let Err(why) = &ground.peer {
        report.line(&format!("the LTTng peer is skipped: {why}"));
    }
    report.keep("machine", ground.machine());
    table(&ground, args.rounds, &mut report);
    report.finish();
    Ok(ExitCode::SUCCESS)
}

/// Iterations in a row.
const ITERATIONS: &str = "4000";
/// Runs of each setting.
pub const ROUNDS: usize = 8;

const SETTINGS: &[Setting] = &[
    Setting::Bare,
    Setting::Dormant,
    DEFAULT,
    Setting::Hetrace("no device times", &["--device-times", "off"]),
    Setting::Hetrace("no calls", &["--exclude", "*"]),
    // What a tracer costs here that records nothing and takes so long.
    Setting::Delay("each call 20 ns longer", &["DELAY_NS=20"]),
    Setting::Delay("each call 50 ns longer", &["DELAY_NS=50"]),
    Setting::Delay("and the driver's times", &["DELAY_NS=50", "DELAY_PROFILE=1"]),
    Setting::PeerOff,
    Setting::PeerOn,
    // The same as the first: the noise.
    Setting::Bare,
];

/// What is kept of the program's output.
const KEYS: [&str; 9] = [
    "sustained.mean",
    "sustained.median",
    "sustained.p99",
    "arguments.mean",
    "launch.mean",
    "read.mean",
    "finish.mean",
    "process.waits",
    "process.preemptions",
];
/// Samples of each of them.
type All = [Samples; KEYS.len()];

/// Where the program runs.
const PLACES: [(Pin, &str); 2] = [(Pin::Processor, "one processor"), (Pin::No, "all processors")];

/// Measures and prints both tables.
pub fn table(ground: &Ground, rounds: usize, report: &mut Report) {
    report.title("Sustained: 4,000 iterations of 10x10 in a row, microseconds");
    report.line(&format!(
        "no pauses, no raised priority; medians of {rounds} processes per setting, run in turn; switches per iteration"
    ));
    let mut kept = Map::new();
    for (pin, name) in PLACES {
        let mut all: Vec<All> = vec![Default::default(); SETTINGS.len()];
        let mut failed = Vec::new();
        for _ in 0..rounds {
            for (setting, samples) in SETTINGS.iter().zip(&mut all).filter(|(s, _)| s.possible(ground)) {
                match once(ground, *setting, pin) {
                    Ok(values) => samples.iter_mut().zip(values).for_each(|(s, value)| s.add(value)),
                    Err(error) => failed.push(format!("{}: {error:#}", setting.name())),
                }
            }
        }
        print(name, &all, report);
        failed.iter().for_each(|why| report.line(why));
        let row = |(number, samples): (usize, &All)| {
            let values: Map<_, _> =
                KEYS.iter().zip(samples).map(|(k, s)| ((*k).to_owned(), s.json())).collect();
            (row_name(number).to_owned(), values.into())
        };
        kept.insert(name.to_owned(), all.iter().enumerate().map(row).collect::<Map<_, _>>().into());
    }
    report.keep("sustained", json!(kept));
}

/// Runs the program once; returns the values of [`KEYS`].
fn once(ground: &Ground, setting: Setting, pin: Pin) -> Result<[f64; KEYS.len()]> {
    let words = [ground.program("sustained").into(), OsString::from("-n"), ITERATIONS.into()];
    let ran = setting::run(ground, setting, pin, &words, |_| Ok(()))?;
    Ok(KEYS.map(|key| ran.values.get(key).copied().unwrap_or(f64::NAN)))
}

/// Name of a row: [`SETTINGS`] begin and end with the bare program.
fn row_name(number: usize) -> &'static str {
    match SETTINGS[number] {
        Setting::Bare if number > 0 => "bare again",
        setting => setting.name(),
    }
}

fn print(name: &str, all: &[All], report: &mut Report) {
    let bare = all[0][0].median();
    let mut rows = Vec::new();
    for (at, [mean, median, p99, parts @ .., waits, preemptions]) in all.iter().enumerate() {
        if mean.count() == 0 {
            continue;
        }
        let mut row = vec![
            format!("{name}, {}", row_name(at)),
            number(mean.median() / 1e3, 2),
            number(median.median() / 1e3, 2),
            number(p99.median() / 1e3, 2),
            difference((mean.median() - bare) / 1e3, 2),
            difference(100.0 * (mean.median() - bare) / bare, 1),
        ];
        row.extend(parts.iter().map(|part| number(part.median() / 1e3, 2)));
        row.extend([waits, preemptions].map(|switches| number(switches.median(), 2)));
        rows.push(row);
    }
    let heads = [
        "setting",
        "mean",
        "median",
        "p99",
        "added",
        "%",
        "arguments",
        "launch",
        "read",
        "finish",
        "waits",
        "preemptions",
    ];
    report.table(&heads, &rows);
}
