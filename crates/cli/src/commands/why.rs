//! `hetrace why`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hetrace_analyze::trace::Trace;
use hetrace_analyze::why::{Options, TextOptions, why};

use super::{newest, terminal};

/// Options of `why`.
#[derive(Debug, Args)]
pub struct Why {
    /// The trace [default: the newest here]
    pub trace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Only devices of this number, or with this in their name or UUID
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Only from this time after the trace's first event, as 1.5s, 20ms, 300us or 4000ns
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Only until this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// Rows of each table
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub top: usize,
    /// List single gaps in the order of time
    #[arg(long)]
    pub gaps: bool,
    /// The shortest gap that is listed
    #[arg(long, default_value = "10us", value_name = "TIME", value_parser = time)]
    pub min: u64,
}

/// Prints where the time of the devices went.
pub fn run(args: &Why) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let trace = Trace::open(&path)?;
    super::tell_problems(&trace);
    let options = Options {
        device: args.device.clone(),
        from: args.from,
        to: args.to,
        gaps: args.gaps.then_some(args.min),
    };
    let report = why(&trace, &options);
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        let width = terminal::columns(&out);
        let text = TextOptions { colour: terminal::colour(&out), width, top: args.top };
        out.write_all(report.render(&text).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A time with its unit, in nanoseconds.
pub fn time(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => 0.0,
    };
    let ns = digits.parse::<f64>().map_or(-1.0, |n| n * unit);
    let fits = unit > 0.0 && (0.0..1e18).contains(&ns);
    if fits { Ok(ns as u64) } else { Err("a time with its unit, as 1.5s, 20ms, 300us or 4000ns".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("1.5s"), Ok(1_500_000_000));
        assert_eq!(time("300us"), Ok(300_000));
        assert_eq!(time("0ns"), Ok(0));
        for wrong in ["", "5", "-1s", "s", "1h", "1e99s", "nan"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
