//! `hetrace print`.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use hetrace_report::print::{Clock, Filter, Form, Options, print_both, print_inside};
use hetrace_trace::trace::Trace;

use super::output::Output;
use super::say;
use super::watch::Watch;
use super::{newest, terminal};
use crate::args;

/// Prints every call or event.
pub fn run(args: &args::Print) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let mut trace = super::open(&path)?;
    super::report_problems(&trace);
    let beside = args.kernel.open(&path, &trace)?;
    let stdout = std::io::stdout();
    let clock = match (args.wall, args.monotonic) {
        (true, _) => Clock::Wall { utc_offset: utc_offset() },
        (_, true) => Clock::Machine,
        _ => Clock::Relative,
    };
    let options = Options {
        form: match (args.events, args.tree) {
            (true, _) => Form::Events,
            (_, true) => Form::Tree,
            _ => Form::Calls,
        },
        clock,
        deltas: args.deltas,
        colour: terminal::colour(&stdout),
        full_names: args.full_names,
    };
    let filter = Filter {
        names: args.filter.clone(),
        apis: args.api.clone(),
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        errors: args.errors,
        min_duration: args.min_duration,
        from: args.from,
        to: args.to,
        args: args.arg.clone(),
    };
    if args.inside {
        super::inside::join(&path, &mut trace)?;
        return inside(&trace, &options, &filter);
    }
    // Lines on a terminal show the progress already.
    let watch = Watch::new(stdout.is_terminal());
    watch.expect(super::events(&trace));
    let mut out = Output::of_text()?;
    let printed =
        print_both(&trace, beside.as_ref(), &options, &filter, &|events| watch.seen(events), &mut out);
    watch.end();
    let summary = printed?;
    let Some(summary) = summary else { return Ok(watch.stopped()) };
    if !out.used && summary.events > 0 {
        super::report_no_match();
    }
    if !summary.is_complete() {
        say(format_args!("{}", summary.what_is_missing()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what warps recorded.
fn inside(trace: &Trace, options: &Options, filter: &Filter) -> Result<ExitCode> {
    let watch = Watch::new(std::io::stdout().is_terminal());
    let mut out = Output::of_text()?;
    let printed = print_inside(trace, options, filter, &|events| watch.seen(events), &mut out);
    watch.end();
    let Some(done) = printed? else { return Ok(watch.stopped()) };
    if trace.inside().is_none() {
        say(format_args!(
            "nothing inside of kernels was recorded: `hetrace run --inside 'NAME*' -- PROGRAM` does"
        ));
    } else if done.lines == 0 {
        super::report_no_match();
    }
    if done.unplaced > 0 {
        say(format_args!("{} launches are left out: their times on the device are not known", done.unplaced));
    }
    Ok(ExitCode::SUCCESS)
}

/// Seconds by which the local time of this machine is ahead of UTC now.
pub(super) fn utc_offset() -> i32 {
    // SAFETY: all bit patterns of a tm are valid, and the calls fill it in.
    unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut local).is_null() { 0 } else { local.tm_gmtoff as i32 }
    }
}
