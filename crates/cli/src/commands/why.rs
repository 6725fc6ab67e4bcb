//! `hetrace why`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hetrace_report::why::{Options, TextOptions, why_watched};

use super::watch::Watch;
use super::{newest, output, terminal};
use crate::args::{Kernel, time};

/// Options of `why`.
#[derive(Debug, Args)]
pub struct Why {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: Kernel,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Only the device with this number, or devices whose name or UUID contains this
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Only from this time since the first event, such as 1.5s, 20ms or 300us; in seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Only until this time since the first event
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// Maximum number of rows of each table
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub top: usize,
    /// List individual gaps in order of time
    #[arg(long)]
    pub gaps: bool,
    /// Minimum duration of a listed gap
    #[arg(long, default_value = "10us", value_name = "TIME", value_parser = time)]
    pub min: u64,
}

/// Prints where the time of the devices went.
pub fn run(args: &Why) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let mut trace = super::open(&path)?;
    super::report_problems(&trace);
    let options = Options {
        device: args.device.clone(),
        from: args.from,
        to: args.to,
        gaps: args.gaps.then_some(args.min),
    };
    let watch = Watch::new(false);
    let seen = |events| watch.seen(events);
    if args.kernel.join(&path, &mut trace, Some(&seen))?.is_err() {
        return Ok(watch.stopped());
    }
    super::inside::join(&path, &mut trace)?;
    let Ok(report) = why_watched(&trace, &options, Some(&seen)) else { return Ok(watch.stopped()) };
    watch.end();
    let text = if args.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        let out = std::io::stdout();
        let width = terminal::columns(&out);
        report.render(&TextOptions { colour: terminal::colour(&out), width, top: args.top })
    };
    output::write_report(&text, args.json)?;
    Ok(ExitCode::SUCCESS)
}
