//! Operations among several ranks: who took part, how much was moved, and what
//! was still open when the trace ends.
//!
//! ```text
//!  call of a collective ── enqueues inside of it ──► its commands are its own
//!        │
//!        └─ enqueues nothing ──► waits for the group's end, the next call with the
//!                                role `flush` on the thread that enqueues; the
//!                                commands are the group's, one part per communicator
//! ```
//!
//! Which functions these are, the model says (`collective`, `communicator`,
//! `element_sizes`).

mod commands;
mod describe;
mod merge;
mod report;
mod rows;
mod seen;
mod track;

pub use rows::{Communicator, Row, Unfinished};
pub use track::Collectives;
