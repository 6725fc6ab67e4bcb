//! Parquet: tables of calls, commands and what they are called, for DuckDB,
//! pyarrow, and other engines of queries. `docs/export-parquet.md` is the manual.
//!
//! ```text
//!  walk ─► rows/: a row as cells ─► Batch: columns of one row group ─► Files: another thread
//!           (what a table is: tables.rs)          (sorted by time)      writes and compresses
//! ```
//!
//! Memory is bounded: a table has one row group that is being filled, and one
//! each being compressed and being written.

mod batch;
mod files;
mod json;
mod rows;
mod schema;
mod tables;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::sync_channel;

use hetrace_ctf::class::EnvValue;
use hetrace_trace::spans::{Summary, walk};
use hetrace_trace::trace::Trace;

pub use schema::{Column, Table, Type};
pub use tables::{SCHEMA, TABLES};

use self::files::Files;
use self::rows::Rows;
use crate::{Error, Watch};

/// What to write.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Arguments and results of calls.
    pub arguments: bool,
    /// The rank that all of the trace is of; none: the one of each process in the trace, and the
    /// lowest of these for the names of the files.
    pub rank: Option<u32>,
}

/// Writes a trace into a folder: `TABLE/host=NAME/rank=N/TABLE.parquet` for each
/// of [`TABLES`]. After an error, files that are there cannot be read.
///
/// # Errors
/// When a file cannot be written, is there already, or `watch` says so.
pub fn export(trace: &Trace, options: &Options, watch: Watch<'_>, folder: &Path) -> Result<Summary, Error> {
    let host = host(trace);
    let number = options.rank.map(u64::from).or_else(|| trace.job().first()).unwrap_or(0);
    let (uuid, rank) = (uuid(trace), number.to_string());
    let about = [("host", host), ("rank", rank.as_str()), ("trace", uuid.as_str())];
    let mut files = Files::create(folder, host, number, &about)?;
    // One row group waits while one is written: a walk that is faster would only need memory.
    let (send, jobs) = sync_channel(1);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || files.write(&jobs).map(|()| files));
        let mut rows = Rows::new(trace, *options, watch, send);
        let summary = match walk(trace, &mut rows) {
            ControlFlow::Continue(summary) => rows.finish(&summary).map_continue(|()| summary),
            ControlFlow::Break(stop) => ControlFlow::Break(stop),
        };
        drop(rows);
        let written = match writer.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // Why the writer has ended is why the walk has.
        let files = written?;
        match summary {
            ControlFlow::Continue(summary) => files.close().map(|()| summary),
            ControlFlow::Break(_) => Err(Error::Stopped),
        }
    })
}

/// Returns the machine's name, as in the trace.
fn host(trace: &Trace) -> &str {
    match trace.ctf().class().env("hostname") {
        Some(EnvValue::Str(name)) if !name.is_empty() => name,
        // Hive has a name for null, but not every reader takes a column of nothing else.
        _ => "unknown",
    }
}

fn uuid(trace: &Trace) -> String {
    let Some(uuid) = trace.ctf().class().uuid else { return String::new() };
    let digits = uuid.iter().enumerate().map(|(at, byte)| {
        let bar = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        format!("{bar}{byte:02x}")
    });
    digits.collect()
}
