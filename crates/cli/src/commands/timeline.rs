//! `hetrace timeline`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use hetrace_analyze::timeline::{Options, timeline};
use hetrace_analyze::trace::Trace;

use super::newest;
use crate::args;

/// Writes the time line.
pub fn run(args: &args::Timeline) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let trace = Trace::open(&path)?;
    super::tell_problems(&trace);
    let options = Options { arguments: !args.no_arguments };
    if args.output.as_ref().is_some_and(|o| o.as_os_str() == "-") {
        timeline(&trace, &options, &mut std::io::stdout().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    let output = args.output.clone().unwrap_or_else(|| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".pftrace");
        PathBuf::from(name)
    });
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&output)
        .with_context(|| format!("{} (choose another with -o)", output.display()))?;
    timeline(&trace, &options, &mut file)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}: open it at https://ui.perfetto.dev", output.display())?;
    Ok(ExitCode::SUCCESS)
}
