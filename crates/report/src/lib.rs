//! Reports on a trace: each answers one question, in a folder of its own.
//!
//! ```text
//!  tally/      where the time went, in tables: calls by layer, commands, traffic, ranges, collectives
//!  print/      every call or event on a line of its own
//!  timeline/   Perfetto
//!  why/        why devices were idle
//!  lint/       misuse and waste
//!  diff/       what changed between traces
//!    │
//!  text/       tables, units and words that reports share
//! ```
//!
//! ```no_run
//! use hetrace_report::tally;
//! use hetrace_trace::trace::Trace;
//!
//! let trace = Trace::open("my-trace".as_ref())?;
//! let tally = tally::tally(&trace, &tally::Options::default());
//! println!("{}", tally.render(&tally::TextOptions::default()));
//! # Ok::<(), hetrace_trace::trace::OpenError>(())
//! ```
//!
//! Rules:
//! - What a trace means is in `hetrace-trace`. A report chooses, sums up and shows.
//! - It knows no API. Only how a heading spells an API is a list here, in `text/mod.rs`.
//! - It does no I/O; reports are values and text, or bytes for a writer of the caller's.
//! - Memory grows with what is open at a time and with rows, not with calls and commands.
//! - No trace makes it panic. What is lost, cut, unfinished or unmatched is
//!   counted, and every report says so.

pub mod diff;
pub mod lint;
pub mod print;
pub mod tally;
mod text;
pub mod timeline;
pub mod why;

pub use text::wrap;
