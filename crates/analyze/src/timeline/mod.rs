//! A time line for Perfetto: processes with their threads and queues, calls and
//! commands as slices, and an arrow from each call to what it had the device do.
//!
//! ```text
//! process 7 (./app)
//! ├── thread 7         ▐ clEnqueueNDRangeKernel ▌      ▐ clFinish ▌
//! │                              ╰──────────╮
//! └── GPU queue 0x10                        ▐ vecadd ▌
//! ```
//!
//! <https://perfetto.dev/docs/reference/trace-packet-proto> has the numbers of
//! the fields. Times are CLOCK_MONOTONIC's.

mod annotations;
mod names;
mod packets;
mod proto;
mod run;
mod tracks;

pub use run::{Options, timeline};
