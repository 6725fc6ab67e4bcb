//! `hetrace postmortem`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hetrace_report::print::{Clock, LastOptions, print_last};
use hetrace_trace::trace::Trace;

use super::output::Output;
use super::print::utc_offset;
use super::watch::Watch;
use super::{newest, say, terminal};

/// Options of `postmortem`.
#[derive(Debug, Args)]
pub struct Postmortem {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    /// How many calls of each thread, and commands of each queue
    #[arg(short = 'n', long, default_value_t = 5, value_name = "N")]
    pub last: usize,
    /// Show the time of day
    #[arg(long)]
    pub wall: bool,
}

/// Prints how a trace ends.
pub fn run(args: &Postmortem) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let trace = Trace::open(&path)?;
    super::report_problems(&trace);
    let clock = if args.wall { Clock::Wall { utc_offset: utc_offset() } } else { Clock::Relative };
    let options = LastOptions { count: args.last, clock, colour: terminal::colour(&std::io::stdout()) };
    let watch = Watch::new(false);
    let mut out = Output::of_text()?;
    let printed = print_last(&trace, &options, &|events| watch.seen(events), &mut out);
    watch.end();
    let Some(summary) = printed? else { return Ok(watch.stopped()) };
    if !summary.is_complete() {
        say(format_args!("{}", summary.what_is_missing()));
    }
    Ok(ExitCode::SUCCESS)
}
