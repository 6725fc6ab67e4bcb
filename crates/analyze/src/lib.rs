//! From a trace to answers: spans, tally, print, timeline.
//!
//! ```text
//!  trace/     a folder opened: streams, models, manifest; event classes resolved once
//!    │
//!  spans/     one walk in the order of time: calls nested per thread, commands, losses
//!    │
//!    ├── tally/      tables: host calls, device commands, traffic
//!    ├── print/      every call or event on a line of its own
//!    └── timeline/   Perfetto
//! ```
//!
//! ```no_run
//! use hetrace_analyze::{tally, trace::Trace};
//!
//! let trace = Trace::open("my-trace".as_ref())?;
//! let tally = tally::tally(&trace, &tally::Options::default());
//! println!("{}", tally.render(&tally::TextOptions::default()));
//! # Ok::<(), hetrace_analyze::trace::OpenError>(())
//! ```
//!
//! What binds it:
//! - It knows no API: what a call means, the model in the trace says. Only how a
//!   heading spells an API is a list here, in `text/mod.rs`.
//! - It reads a folder in [`trace::Trace::open`] and does no other I/O; reports
//!   are values and text, or bytes for a writer of the caller's.
//! - Memory grows with what is open at a time (calls, threads, queues, names),
//!   not with the trace.
//! - No trace makes it panic. What is lost, cut, unfinished or unmatched is
//!   counted, and every report says so.

mod args;
pub mod print;
pub mod spans;
pub mod tally;
mod text;
pub mod timeline;
pub mod trace;
