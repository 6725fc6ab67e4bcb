//! `hetrace trim`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use hetrace_edit::{Error, Window};

use super::outside::outside;
use super::say;
use super::watch::Watch;
use super::{form, newest};
use crate::args::time;

/// Options of `trim`.
#[derive(Debug, Args)]
pub struct Trim {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    /// The folder to write; must not exist
    #[arg(short, long)]
    pub output: PathBuf,
    /// Compress the streams with zstd
    #[arg(long)]
    pub compress: bool,
    /// Keep events from this time since the first event, such as 1.5s, 20ms or 300us, and calls in
    /// progress then
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Keep events before this time since the first event
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// Keep only what this process did (may be repeated)
    #[arg(long, value_delimiter = ',')]
    pub pid: Vec<i64>,
    /// Keep only what this thread did (may be repeated)
    #[arg(long, value_delimiter = ',')]
    pub tid: Vec<i64>,
    /// Keep only calls of this API, and commands on its queues (may be repeated)
    #[arg(long, value_name = "API", value_delimiter = ',')]
    pub api: Vec<String>,
}

/// Writes the trace.
pub fn run(args: &Trim) -> Result<ExitCode> {
    if args.from.zip(args.to).is_some_and(|(from, to)| from >= to) {
        bail!("--to must be after --from");
    }
    let trace = newest::trace(args.trace.as_deref())?;
    outside(&trace, &args.output)?;
    let window = Window {
        from: args.from,
        to: args.to,
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        apis: args.api.clone(),
    };
    let watch = Watch::of_bytes();
    let done =
        hetrace_edit::trim(&trace, &args.output, &window, form(args.compress), &|bytes| watch.seen(bytes));
    watch.end();
    let done = match done {
        Err(Error::Stopped) => return Ok(watch.stopped()),
        done => done?,
    };
    for problem in &done.problems {
        say(format_args!("{problem}"));
    }
    if !done.matched && window != Window::default() {
        say(format_args!(
            "no events match the filter: the part has no calls and no commands; `hetrace tally --by process,thread {}` \
             shows which processes and threads there are",
            trace.display()
        ));
    }
    let packets = done.copied + done.rewritten;
    let mut out = std::io::stdout().lock();
    write!(out, "{}: {packets} packets, {:.1} MB", args.output.display(), done.bytes as f64 / 1e6)?;
    match done.before {
        0 => writeln!(out)?,
        n => writeln!(out, ", including {n} earlier events that later ones depend on")?,
    }
    Ok(ExitCode::SUCCESS)
}
