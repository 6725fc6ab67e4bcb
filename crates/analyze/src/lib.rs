//! From a trace to answers: spans, tally, print, timeline.
//!
//! ```text
//!  trace/     a folder opened: streams, models, manifest; event classes resolved once
//!    │
//!  spans/     one walk in the order of time: calls nested per thread, commands, losses
//!    │
//!    ├── tally/      tables: calls by layer, commands, traffic, ranges, collectives, telemetry
//!    ├── print/      every call or event on a line of its own
//!    └── timeline/   Perfetto
//!
//!  ranges, collectives/, telemetry    what the program marked, what its ranks did together,
//!                                     what devices told: by role, for all reports
//!  waits                              which call learned that a command had ended
//!  demangle, occupancy                names of kernels; how full they can make a device
//!  watch                              long work asks whether to go on
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
//! - Memory grows with what is open at a time (calls, threads, queues, names), with
//!   ranges, collectives (a million of each thread are remembered) and telemetry, not
//!   with calls and commands.
//! - No trace makes it panic. What is lost, cut, unfinished or unmatched is
//!   counted, and every report says so.

pub mod args;
pub mod collectives;
pub mod demangle;
pub mod diff;
mod hash;
mod history;
pub mod lint;
pub mod occupancy;
pub mod print;
pub mod ranges;
pub mod spans;
pub mod tally;
pub mod telemetry;
mod text;
pub mod timeline;
pub mod trace;
pub mod waits;
mod watch;
pub mod why;

pub use watch::{Stopped, Watch};
