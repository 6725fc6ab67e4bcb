//! `hetrace tally`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use hetrace_analyze::tally::{Options, TextOptions, tally};
use hetrace_analyze::trace::Trace;

use super::{newest, terminal};
use crate::args;

/// Prints the tables.
pub fn run(args: &args::Tally) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let trace = Trace::open(&path)?;
    super::tell_problems(&trace);
    let tables = tally(&trace, &Options { extended: args.extended });
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &tables)?;
        writeln!(out)?;
    } else {
        let options = TextOptions {
            colour: terminal::colour(&out),
            extended: args.extended,
            width: terminal::columns(&out),
            max_name: args.max_name,
        };
        out.write_all(tables.render(&options).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
