//! `hetrace diff`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hetrace_report::diff::{
    By, FailOn, Form, Metric, MinChange, Options, Profile, Report, TextOptions, Time, diff,
};
use hetrace_report::tally::Aggregate;
use hetrace_trace::trace::Trace;

use super::say;
use super::watch::Watch;
use super::{is_closed_pipe, newest, output, terminal};

/// Exit status when B is slower than allowed.
const WORSE: u8 = 1;
/// Rows of each table of text.
const TOP: usize = 20;

/// Options of `diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 on success, 1 if B is slower than --fail-on allows, 2 for an invalid \
                        command line, 125 if hetrace itself failed.\n\nMore runs give narrower intervals: use at \
                        least three of each side. Of five or more, the fastest and the slowest fifth are left out, so \
                        that a disturbed run does no harm."
)]
pub struct Diff {
    /// Traces of A, and after `--` those of B; files written by `hetrace tally --save` work, too
    #[arg(required = true, value_name = "A")]
    pub a: Vec<PathBuf>,
    /// Traces of B
    #[arg(last = true, value_name = "B")]
    pub b: Vec<PathBuf>,
    /// The tables to show, in this order [default: kernel, copy and path]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub by: Vec<Table>,
    /// Which time of calls is compared: self time, or with the calls inside
    #[arg(long, value_enum, default_value_t)]
    pub time: Which,
    /// Only functions, kernels and command kinds that match this glob, and paths through them (may be
    /// repeated)
    #[arg(long, value_name = "GLOB")]
    pub filter: Vec<String>,
    /// Hide smaller changes: a time such as 10us, or a fraction of the time in A such as 1%
    #[arg(long, value_name = "CHANGE", value_parser = min_change)]
    pub min_change: Option<MinChange>,
    /// Divide totals of calls by the number of processes, and totals of commands by that of devices
    #[arg(long)]
    pub per_process: bool,
    /// Exit with status 1 if B is slower by more than this, such as 2%, and the difference is significant
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_on: Option<f64>,
    /// The metrics that --fail-on checks [default: wall and device]
    #[arg(long, value_enum, value_delimiter = ',', requires = "fail_on")]
    pub metric: Vec<Of>,
    /// Maximum number of rows of each table [default: 20; all with --json]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print the tables in Markdown
    #[arg(long)]
    pub markdown: bool,
    /// Show kernel names with all template arguments and parameters
    #[arg(long)]
    pub full_names: bool,
}

/// What the rows of a table are.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Table {
    /// Call paths: a function and its callers
    Path,
    /// Functions
    Name,
    /// Functions and the code that calls them: of runs with --stacks or --py-stacks
    Site,
    /// APIs
    Api,
    /// Kernels
    Kernel,
    /// Copies by direction
    Copy,
}

/// Which time of calls.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Which {
    /// Self time: without the recorded calls inside
    #[default]
    Own,
    /// Total time: with the calls inside
    Total,
}

/// A metric that must not get worse.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Of {
    /// From the first event to the last
    Wall,
    /// Busy time of devices
    Device,
    /// Time of all device commands
    Commands,
    /// Time in recorded calls
    Host,
    /// Each row of the tables, corrected for multiple comparisons
    Rows,
}

/// Prints the differences, and returns whether they exceed the limit.
pub fn run(args: &Diff) -> Result<ExitCode> {
    let (a, b) = match sides(args) {
        Ok(sides) => sides,
        // As of all wrong command lines.
        Err(error) => {
            say(format_args!("{error}"));
            return Ok(ExitCode::from(2));
        }
    };
    let watch = Watch::new(false);
    let (Some(a), Some(b)) = (profiles(&a, &watch)?, profiles(&b, &watch)?) else {
        return Ok(watch.stopped());
    };
    if watch.seen(0).is_break() {
        return Ok(watch.stopped());
    }
    watch.end();
    let mut report = diff(&a, &b, &options(args))?;
    // The verdict holds whether or not somebody reads the tables.
    let code = judge(&report);
    match show(&mut report, args) {
        Err(error) if is_closed_pipe(&error) => Ok(code),
        shown => shown.map(|()| code),
    }
}

/// Returns the traces of each side; two without `--` are one and one.
fn sides(args: &Diff) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (a, b) = match (args.a.as_slice(), args.b.as_slice()) {
        ([a, b], []) => (vec![a.clone()], vec![b.clone()]),
        (_, []) => bail!("no runs of B; put `--` between the runs of A and those of B"),
        (a, b) => (a.to_vec(), b.to_vec()),
    };
    if let Some(option) = b.iter().find(|path| path.to_string_lossy().starts_with('-') && !path.exists()) {
        bail!("{}: only runs can follow `--`; put options before it", option.display());
    }
    Ok((each_once(a, "A"), each_once(b, "B")))
}

/// Removes duplicates: one trace is one run, however often it is given.
fn each_once(paths: Vec<PathBuf>, side: &str) -> Vec<PathBuf> {
    let (mut seen, mut kept) = (std::collections::HashSet::new(), Vec::new());
    for path in paths {
        let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
        if seen.insert(canonical) {
            kept.push(path);
        } else {
            say(format_args!("{} is given twice in {side}: counted as one run", path.display()));
        }
    }
    kept
}

/// Returns the profile of each run; `None` if reading was stopped.
fn profiles(paths: &[PathBuf], watch: &Watch) -> Result<Option<Vec<Profile>>> {
    let seen = |events| watch.seen(events);
    let mut all = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        if let Some(bytes) = super::tally::saved(path)? {
            let sums = Aggregate::from_bytes(&bytes).with_context(|| name.clone())?;
            let sums = sums.whole_run().with_context(|| name.clone())?;
            all.push(Profile::of_sums(&name, &sums));
            continue;
        }
        let trace = Trace::open(&newest::trace(Some(path))?)?;
        super::report_problems(&trace);
        match Profile::of_trace(&name, &trace, Some(&seen)) {
            Ok(profile) => all.push(profile),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(all))
}

fn options(args: &Diff) -> Options {
    let mut by: Vec<By> = Vec::new();
    for table in &args.by {
        let table = match table {
            Table::Path => By::Path,
            Table::Name => By::Name,
            Table::Site => By::Site,
            Table::Api => By::Api,
            Table::Kernel => By::Kernel,
            Table::Copy => By::Copy,
        };
        if !by.contains(&table) {
            by.push(table);
        }
    }
    let metric = |of: &Of| match of {
        Of::Wall => Metric::Wall,
        Of::Device => Metric::Device,
        Of::Commands => Metric::Commands,
        Of::Host => Metric::Host,
        Of::Rows => Metric::Rows,
    };
    let mut metrics: Vec<Metric> = args.metric.iter().map(metric).collect();
    metrics.dedup();
    Options {
        by,
        time: match args.time {
            Which::Own => Time::Own,
            Which::Total => Time::Total,
        },
        filter: args.filter.clone(),
        min_change: args.min_change,
        per_process: args.per_process,
        fail_on: args.fail_on.map(|percent| FailOn { percent, metrics }),
    }
}

/// Reports what is slower than allowed, and returns the exit status for it.
fn judge(report: &Report) -> ExitCode {
    let Some(verdict) = &report.verdict else { return ExitCode::SUCCESS };
    if !verdict.tested {
        say(format_args!(
            "only one run on a side: significance is unknown, the difference itself is compared"
        ));
    }
    if report.is_lossy() {
        say(format_args!("some traces are incomplete: dropped events make a side look faster than it was"));
    }
    for failure in &verdict.failures {
        say(format_args!("slower by more than {}%: {failure}", verdict.limit_percent));
    }
    if verdict.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(WORSE) }
}

fn show(report: &mut Report, args: &Diff) -> Result<()> {
    if args.json {
        report.keep(args.top.unwrap_or(usize::MAX));
        return output::write(&(serde_json::to_string_pretty(report)? + "\n"));
    }
    let out = std::io::stdout();
    let options = TextOptions {
        colour: !args.markdown && terminal::colour(&out),
        width: terminal::columns(&out),
        top: args.top.unwrap_or(TOP),
        full_names: args.full_names,
        form: if args.markdown { Form::Markdown } else { Form::Plain },
    };
    output::write_text(&report.render(&options))
}

/// Parses a percentage, with or without the sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    number.filter(|n| (0.0..1e9).contains(n)).ok_or_else(|| "expected a percentage such as 2%".to_owned())
}

fn min_change(text: &str) -> Result<MinChange, String> {
    if text.ends_with('%') {
        return percent(text).map(MinChange::Percent);
    }
    let time = crate::args::time(text).map(|ns| MinChange::Ns(ns as f64));
    time.map_err(|_| "expected a time such as 10us, or a percentage such as 1%".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Cli, Command};

    fn parsed(line: &[&str]) -> Option<Diff> {
        let line = ["hetrace", "diff"].iter().chain(line);
        match Cli::try_parse_from(line).ok()?.command {
            Command::Diff(diff) => Some(diff),
            _ => None,
        }
    }

    #[test]
    fn two_sides_are_two_lists() {
        let of = |line: &[&str]| parsed(line).map(|d| sides(&d).ok().map(|(a, b)| (a.len(), b.len())));
        assert_eq!(of(&["x", "y", "--", "z"]), Some(Some((2, 1))));
        assert_eq!(of(&["x", "y"]), Some(Some((1, 1))));
        assert_eq!(of(&["--fail-on", "2%", "x", "--", "y", "z", "z"]), Some(Some((1, 2))));
        assert_eq!(of(&["x"]), Some(None));
        assert_eq!(of(&["x", "y", "z"]), Some(None));
        assert_eq!(of(&["x", "--", "y", "--fail-on", "2%"]), Some(None));
        assert_eq!(of(&["--", "z"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn limits_are_percents_or_times() {
        assert_eq!(percent("2%"), Ok(2.0));
        assert_eq!(percent("0.5"), Ok(0.5));
        assert_eq!(min_change("1%"), Ok(MinChange::Percent(1.0)));
        assert_eq!(min_change("10us"), Ok(MinChange::Ns(10_000.0)));
        for wrong in ["", "%", "-1%", "nan%", "inf", "x"] {
            assert!(percent(wrong).is_err() && min_change(wrong).is_err(), "{wrong}");
        }
    }
}
