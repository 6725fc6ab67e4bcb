//! `hetrace merge`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hetrace_edit::Error;

use super::form;
use super::outside::outside;
use super::say;
use super::watch::Watch;

/// Options of `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// The traces, packed or not: of ranks, of hosts, of programs started separately. The folder of a run in several
    /// parts is one of them, also alone
    #[arg(required = true, num_args = 1.., value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// The folder to write; must not exist
    #[arg(short, long)]
    pub output: PathBuf,
    /// Compress the streams with zstd
    #[arg(long)]
    pub compress: bool,
}

/// Writes the trace.
pub fn run(args: &Merge) -> Result<ExitCode> {
    args.traces.iter().try_for_each(|trace| outside(trace, &args.output))?;
    let watch = Watch::of_bytes();
    let done =
        hetrace_edit::merge(&args.traces, &args.output, form(args.compress), &|bytes| watch.seen(bytes));
    watch.end();
    let done = match done {
        Err(Error::Stopped) => return Ok(watch.stopped()),
        done => done?,
    };
    for text in done.problems.iter().chain(&done.notes) {
        say(format_args!("{text}"));
    }
    let (traces, streams) = (args.traces.len(), done.streams);
    writeln!(
        std::io::stdout().lock(),
        "{}: {traces} traces, {streams} streams, {:.1} MB",
        args.output.display(),
        done.bytes as f64 / 1e6
    )?;
    Ok(ExitCode::SUCCESS)
}
