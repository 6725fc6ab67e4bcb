//! The kernel's perf events: opening them, their ring buffers, and the records in these; and what programs in the
//! kernel record in their place ([`bpf`]).
//!
//! ```text
//!  tracepoint A, CPU 0 ──┐
//!  tracepoint B, CPU 0 ──┼──► ring of CPU 0 ──► records ──► recorder
//!  switches,     CPU 0 ──┘
//! ```
//! All `unsafe` of this crate is in this folder.

pub mod bpf;
pub mod close;
pub mod open;
pub mod preferred;
pub mod record;
pub mod ring;
pub mod sampled;
pub mod user;
