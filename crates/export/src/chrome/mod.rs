//! Chrome's trace-event format: JSON for `chrome://tracing`, Perfetto, Speedscope and others.
//!
//! ```text
//! X   a call, on the row of its thread, or a command, on one of its queue
//! s f an arrow from the call to each command that it caused, of a graph to none, and from a command to the
//!     call that waited for it
//! b e a range of the program; i its marks
//! X   states of threads by the operating system's events, on a row for each thread ([`STATES`])
//! C   commands in flight of each queue, telemetry of each device
//! M   names of processes, threads and queues
//! ```
//!
//! It is written while the trace is read. Times are microseconds since the first event, exact
//! to the nanosecond. Queues have thread numbers from [`QUEUES`] on, since the format knows
//! processes and threads only; commands of a queue that overlap lie on several of them.
//! What is missing in the trace is in `otherData`.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU> has the format.

mod arguments;
mod json;
mod queues;
mod states;
mod walk;

use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_trace::spans::{Summary, walk};
use hetrace_trace::trace::Trace;

use crate::{Error, Watch};

/// The thread number of the first queue: above those of Linux.
pub const QUEUES: u64 = 1 << 23;
/// The thread number of a thread's states is this more than its own: above those of queues.
pub const STATES: u64 = 1 << 24;

/// What to write.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Arguments and results of calls.
    pub arguments: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { arguments: true }
    }
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Events of the format.
    pub events: u64,
    /// What was read.
    pub summary: Summary,
}

/// Why a walk ended early.
enum Stop {
    Io(io::Error),
    Asked,
}

/// Writes a trace as JSON.
///
/// # Errors
/// Those of `out`, and when `watch` says so. What was written then is no JSON.
pub fn write(
    trace: &Trace,
    options: &Options,
    out: &mut dyn Write,
    watch: Watch<'_>,
) -> Result<Written, Error> {
    let failed = |source| Error::Io { path: "the trace events".to_owned(), source };
    let mut writer = walk::Writer::new(trace, *options, out, watch);
    let summary = match walk(trace, &mut writer) {
        ControlFlow::Continue(summary) => summary,
        ControlFlow::Break(Stop::Io(error)) => return Err(failed(error)),
        ControlFlow::Break(Stop::Asked) => return Err(Error::Stopped),
    };
    let events = writer.finish(&summary).map_err(failed)?;
    Ok(Written { events, summary })
}
