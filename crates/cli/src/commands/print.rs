//! `hetrace print`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use hetrace_analyze::print::{Clock, Form, Options, print};
use hetrace_analyze::trace::Trace;

use super::{newest, terminal};
use crate::args;

/// Prints every call or event.
pub fn run(args: &args::Print) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let trace = Trace::open(&path)?;
    super::tell_problems(&trace);
    let stdout = std::io::stdout().lock();
    let clock = match (args.wall, args.monotonic) {
        (true, _) => Clock::Wall { utc_offset: utc_offset() },
        (_, true) => Clock::Machine,
        _ => Clock::Relative,
    };
    let options = Options {
        form: if args.events { Form::Events } else { Form::Calls },
        clock,
        deltas: args.deltas,
        colour: terminal::colour(&stdout),
    };
    let mut out = BufWriter::new(stdout);
    print(&trace, &options, &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Seconds by which the local time of this machine is ahead of UTC now.
fn utc_offset() -> i32 {
    // SAFETY: all bit patterns of a tm are valid, and the calls fill it in.
    unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut local).is_null() { 0 } else { local.tm_gmtoff as i32 }
    }
}
