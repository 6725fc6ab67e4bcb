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

/// Exit status when B is worse than is allowed.
const WORSE: u8 = 1;
/// Rows of each table of text.
const TOP: usize = 20;

/// Options of `diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if all is well, 1 if B is slower than --fail-on allows, 2 for a wrong \
                        command line, 125 if hetrace itself failed.\n\nThe more runs, the more is known: three of \
                        each side at least."
)]
pub struct Diff {
    /// Traces of A, and after `--` those of B; files made by `hetrace tally --save` will do
    #[arg(required = true, value_name = "A")]
    pub a: Vec<PathBuf>,
    /// Traces of B
    #[arg(last = true, value_name = "B")]
    pub b: Vec<PathBuf>,
    /// Tables, in this order [default: kernel, copy and path]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub by: Vec<Table>,
    /// The time of calls that is compared: outside of other recorded calls, or all of it
    #[arg(long, value_enum, default_value_t)]
    pub time: Which,
    /// Only functions, kernels and kinds of commands that match this glob, and paths through them (may
    /// be repeated)
    #[arg(long, value_name = "GLOB")]
    pub filter: Vec<String>,
    /// Leave out what changed less: a time, as 10us, or a part of what it took in A, as 1%
    #[arg(long, value_name = "CHANGE", value_parser = min_change)]
    pub min_change: Option<MinChange>,
    /// Divide sums of calls by the number of processes, and sums of commands by that of devices
    #[arg(long)]
    pub per_process: bool,
    /// Exit with status 1 if B is slower by more than this, as 2%, and chance alone does not explain it
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_on: Option<f64>,
    /// What --fail-on looks at [default: wall and device]
    #[arg(long, value_enum, value_delimiter = ',', requires = "fail_on")]
    pub metric: Vec<Of>,
    /// Rows of each table [default: 20; all with --json]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print the tables in Markdown
    #[arg(long)]
    pub markdown: bool,
    /// Show names of kernels with all arguments of templates and all parameters
    #[arg(long)]
    pub full_names: bool,
}

/// What rows are of.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Table {
    /// Call paths: a function and all that it was called in
    Path,
    /// Functions
    Name,
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
    /// Outside of other recorded calls
    #[default]
    Own,
    /// With calls inside
    Total,
}

/// What must not get worse.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Of {
    /// From the first event to the last
    Wall,
    /// Time in which devices were busy
    Device,
    /// Time of all commands on devices
    Commands,
    /// Time in recorded calls
    Host,
    /// Each row of the tables; not so many are marked by chance
    Rows,
}

/// Prints what differs, and says whether it is too much.
pub fn run(args: &Diff) -> Result<ExitCode> {
    let (a, b) = sides(args)?;
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

/// The traces of each side; two without `--` are one and one.
fn sides(args: &Diff) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (a, b) = match (args.a.as_slice(), args.b.as_slice()) {
        ([a, b], []) => (vec![a.clone()], vec![b.clone()]),
        (_, []) => bail!("no runs of B; put `--` between those of A and those of B"),
        (a, b) => (a.to_vec(), b.to_vec()),
    };
    if let Some(option) = b.iter().find(|path| path.to_string_lossy().starts_with('-') && !path.exists()) {
        bail!("{}: behind `--` there are runs only; options go before", option.display());
    }
    Ok((each_once(a, "A"), each_once(b, "B")))
}

/// One trace is one run, however often it is named.
fn each_once(paths: Vec<PathBuf>, side: &str) -> Vec<PathBuf> {
    let (mut seen, mut kept) = (std::collections::HashSet::new(), Vec::new());
    for path in paths {
        let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
        if seen.insert(canonical) {
            kept.push(path);
        } else {
            say(format_args!("{} is named twice in {side}: it counts as one run", path.display()));
        }
    }
    kept
}

/// What is known of each run; nothing if the reading was stopped.
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
        super::tell_problems(&trace);
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

/// Says what is worse than is allowed, and gives the status for it.
fn judge(report: &Report) -> ExitCode {
    let Some(verdict) = &report.verdict else { return ExitCode::SUCCESS };
    if !verdict.tested {
        say(format_args!("one run on a side: the difference itself is compared, and may be chance"));
    }
    if report.is_lossy() {
        say(format_args!("some traces are incomplete: what they lack makes a side seem faster than it was"));
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
    output::write(&report.render(&options))
}

/// A part in percent, with or without the sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    number.filter(|n| (0.0..1e9).contains(n)).ok_or_else(|| "a part in percent, as 2%".to_owned())
}

fn min_change(text: &str) -> Result<MinChange, String> {
    if text.ends_with('%') {
        return percent(text).map(MinChange::Percent);
    }
    let time = crate::args::time(text).map(|ns| MinChange::Ns(ns as f64));
    time.map_err(|_| "a time, as 10us, or a part, as 1%".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

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
