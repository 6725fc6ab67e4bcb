//! One file per command.

pub mod check;
pub mod completions;
pub mod cost;
pub mod diff;
pub mod doctor;
pub mod export;
mod follow;
mod handed;
mod inside;
pub mod kernel;
pub mod lint;
mod live;
pub mod man;
pub mod merge;
pub mod model;
mod newest;
mod output;
mod outside;
pub mod pack;
pub mod postmortem;
pub mod print;
pub mod recover;
pub mod rewrite;
pub mod run;
mod screen;
pub mod service;
pub mod snapshot;
pub mod system;
pub mod tally;
mod terminal;
pub mod timeline;
pub mod top;
pub mod trim;
pub mod users;
pub mod watch;
pub mod why;

use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;

use anyhow::{Result, ensure};
use hetrace_session::recover::{State, state as recover_state};
use hetrace_trace::trace::Trace;

/// Exit status when hetrace itself failed.
pub const OWN_FAILURE: u8 = 125;

/// Exit status for a wrong command line, as the parser of command lines has it.
const WRONG_COMMAND_LINE: u8 = 2;

/// What is wrong with the values of options, found when the line was parsed already.
#[derive(Debug)]
struct WrongValue(anyhow::Error);

impl std::fmt::Display for WrongValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for WrongValue {}

/// Returns the error with which hetrace ends as with other wrong command lines.
pub fn wrong_value(error: anyhow::Error) -> anyhow::Error {
    WrongValue(error).into()
}

/// Returns the exit status of a command that could not do its work.
pub fn failure(error: &anyhow::Error) -> u8 {
    if error.is::<WrongValue>() { WRONG_COMMAND_LINE } else { OWN_FAILURE }
}

/// Writes a line to stderr. Ignores errors: a closed pipe or a full disk behind it is not a failure
/// of hetrace, and does not change the exit status.
pub fn say(what: std::fmt::Arguments) {
    let _ = writeln!(std::io::stderr(), "hetrace: {what}");
}

/// Refuses a folder for a trace that is there already.
fn not_taken(folder: &Path) -> Result<()> {
    ensure!(
        folder.symlink_metadata().is_err(),
        "{}: already exists; choose another folder with -o",
        folder.display()
    );
    Ok(())
}

/// Returns how many events a trace has, as far as its manifest says.
fn events(trace: &Trace) -> Option<u64> {
    trace.manifest().written.records
}

/// Returns whether an error only says that the reader of our output has closed it.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut io = error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>());
    io.any(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Returns whether an error only says that Ctrl-C was pressed while output waited for its reader.
pub fn is_stopped(error: &anyhow::Error) -> bool {
    let mut io = error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>());
    io.any(|e| e.get_ref().is_some_and(|inner| inner.is::<hetrace_trace::Stopped>()))
}

/// Maximum number of changed files that are listed.
const DIFFERENCES: usize = 16;

/// Opens a trace that is there until the command ends, see [`keep`].
fn open(path: &Path) -> Result<ManuallyDrop<Trace>> {
    Ok(ManuallyDrop::new(Trace::open(path)?))
}

/// Keeps a trace until the command ends if that is soon, `the_last`: to give its memory back piece by piece would take a
/// tenth of the time of a small one.
fn keep(trace: Trace, the_last: bool) {
    if the_last {
        std::mem::forget(trace);
    }
}

/// Reports what of a trace could not be read, and which files changed.
fn report_problems(trace: &Trace) {
    if let Some(unfinished) = unfinished(trace) {
        say(format_args!("{unfinished}"));
    }
    if let Some(os) = trace.manifest().os.as_ref().filter(|os| !os.is_complete()) {
        let (dropped, unwritten, damaged) = (os.dropped, os.unwritten, os.damaged_bytes);
        say(format_args!(
            "operating system: {dropped} events dropped by the kernel, {unwritten} not written; {damaged} bytes unreadable"
        ));
    }
    for problem in trace.problems() {
        say(format_args!("{problem}"));
    }
    let differences = trace.differences();
    for difference in differences.iter().take(DIFFERENCES) {
        say(format_args!("{difference}"));
    }
    if differences.len() > DIFFERENCES {
        let more = differences.len() - DIFFERENCES;
        say(format_args!("{more} more files differ; `hetrace check` lists them"));
    }
}

/// Returns why a trace is unfinished.
fn unfinished(trace: &Trace) -> Option<&'static str> {
    let manifest = trace.manifest();
    let session = manifest.session.as_ref().filter(|_| !manifest.is_present())?;
    Some(match recover_state(session) {
        State::Alive => "this trace is still being recorded: later events are missing",
        State::Left => {
            "hetrace was killed while it recorded this trace: `hetrace recover` adds the events left in shared memory"
        }
        State::Gone => "hetrace was killed while it recorded this trace: events not yet written are lost",
    })
}

/// Reports that no events match the filter.
fn report_no_match() {
    say(format_args!("no events match the filter"));
}

/// Reports dropped events for forms that do not show them.
fn report_missing(summary: &hetrace_trace::spans::Summary) {
    if !summary.is_complete() {
        say(format_args!("{}", summary.what_is_missing()));
    }
}

/// Returns how the streams of a new trace are written.
fn form(compress: bool) -> hetrace_edit::Form {
    if compress { hetrace_edit::Form::Compressed } else { hetrace_edit::Form::Plain }
}
