//! `hetrace cost`: what tracing costs a program, measured with the program itself.

mod differences;
mod measure;
mod show;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use self::measure::{Failure, Plan, Setting};
use super::output;
use super::watch::{Watch, interrupted};
use crate::args::{DeviceTimes, Mode, percent};

/// Exit status when the program failed, or did not end the same way in all runs.
const FAILED: u8 = 1;

/// Options of `cost`.
#[derive(Debug, Args)]
#[command(after_help = "\
The program runs once to warm up, then in rounds: bare, bare again, and once in each setting, in an order that \
moves on by one with each round. Shown are medians of the differences to the bare run of the same round, with an \
interval by ranks, which no distribution is assumed for: outside of it the median lies with the probability that \
stands above it. The line `bare again` compares bare runs with bare runs: no difference smaller than its interval \
means anything.

`wall` is from the start of the command to its end: with hetrace, it includes what hetrace does before the \
program starts and after it ended. `lifetime` is from the program's exec to its end. `processor` is what the \
program, with the children it waited for, took of processors in user and system mode: it says more than the others \
on a machine that does something else meanwhile. `stated` is what the report of the trace says that tracing took \
inside of the program, of all its threads together.

The program reads nothing (/dev/null). What it prints is shown in the first run, and discarded in all others; \
with --json it is always discarded. Traces are written to TMPDIR (/tmp if it is not set) and removed.

Exit status: 0 if it was measured, 1 if the program failed or ended differently in one of the runs, 125 if \
hetrace itself failed.")]
pub struct Cost {
    /// Rounds; intervals get narrower with more of them, and hold with 95% from 6 on
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub runs: u32,
    /// Modes of `run` to measure, separated by commas
    #[arg(short, long, value_enum, default_value = "default", value_delimiter = ',')]
    pub mode: Vec<Mode>,
    /// Sources of device times to measure each of these with, separated by commas, as in `run`
    #[arg(long, value_name = "SOURCE", value_delimiter = ',')]
    pub device_times: Vec<DeviceTimes>,
    /// Budgets to measure each of these with, separated by commas, as in `run`; `off` is none
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = budget)]
    pub max_overhead: Vec<String>,
    /// Another option of `run`, for all settings (may be repeated), as in --with=--on-full=block
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub with: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// Measures and prints.
pub fn run(args: &Cost) -> Result<ExitCode> {
    let _watch = Watch::new(true);
    let plan = Plan {
        command: args.command.clone(),
        settings: settings(args),
        rounds: args.runs as usize,
        shows_output: !args.json,
    };
    let measured = match measure::all(&plan) {
        Ok(measured) => measured,
        Err(Failure::Stopped) => return Ok(interrupted()),
        Err(Failure::Program(what)) => {
            super::say(format_args!("{what}"));
            return Ok(ExitCode::from(FAILED));
        }
        Err(Failure::Own(error)) => return Err(error),
    };
    let text = if args.json { show::json(&plan, &measured)? } else { show::text(&plan, &measured) };
    output::write_report(&text, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// A budget as `run` takes it, or `off`.
fn budget(text: &str) -> Result<String, String> {
    if text != "off" {
        percent(text)?;
    }
    Ok(text.to_owned())
}

/// Each mode with each source of device times and each budget.
fn settings(args: &Cost) -> Vec<Setting> {
    let name = |mode: &Mode| {
        let value = clap::ValueEnum::to_possible_value(mode);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let mut settings = Vec::new();
    for mode in &args.mode {
        let sources: Vec<Option<DeviceTimes>> = match args.device_times.as_slice() {
            [] => vec![None],
            sources => sources.iter().copied().map(Some).collect(),
        };
        let off = ["off".to_owned()];
        let budgets = if args.max_overhead.is_empty() { &off[..] } else { &args.max_overhead };
        for (source, budget) in sources.iter().flat_map(|s| budgets.iter().map(move |b| (s, b))) {
            let mut options = vec![format!("--mode={}", name(mode))];
            options.extend(source.map(|source| format!("--device-times={source}")));
            options.extend((budget != "off").then(|| format!("--max-overhead={budget}")));
            options.extend(args.with.iter().cloned());
            if !settings.iter().any(|known: &Setting| known.options == options) {
                settings.push(Setting { options });
            }
        }
    }
    settings
}
