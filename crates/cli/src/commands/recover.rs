//! `hetrace recover`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hetrace_session::recover::{State, recover, state};
use hetrace_trace::trace::Trace;

use super::say;
use crate::args::Recover;

/// Finishes traces whose launcher was killed.
pub fn run(args: &Recover) -> Result<ExitCode> {
    if let Some(path) = &args.trace {
        let trace = Trace::open(path).with_context(|| path.display().to_string())?;
        let session = trace.manifest().session.as_ref();
        match session.map(|session| state(session)) {
            None => {
                say(format_args!("{}: nothing to recover: the trace is finished", path.display()));
                return Ok(ExitCode::SUCCESS);
            }
            Some(State::Alive) => bail!("{}: still being recorded", path.display()),
            Some(State::Gone) => bail!(
                "{}: nothing of its session is left in shared memory of this user on this machine",
                path.display()
            ),
            Some(State::Left) => {}
        }
    }
    let all = recover(args.trace.as_deref());
    if all.is_empty() {
        say(format_args!("nothing to recover"));
    }
    let mut failed = None;
    for done in all {
        match done {
            Ok(done) => say(format_args!("{done}")),
            Err((trace, error)) => failed = Some((trace, error)),
        }
    }
    match failed {
        Some((trace, error)) => Err(error).with_context(|| trace.display().to_string()),
        None => Ok(ExitCode::SUCCESS),
    }
}
