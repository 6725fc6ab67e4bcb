//! What a trace means: its events in the order of time, calls, commands, and what both say together.
//!
//! ```text
//!  trace/     a folder opened: streams, models, manifest; event classes resolved once
//!    │
//!  spans/     one walk in the order of time: calls nested per thread, commands, losses;
//!    │        a `Visitor` is whoever wants to see them
//!    │
//!  args/, values, facts            what calls were passed, and what functions mean by their roles
//!  ranges, collectives/, telemetry what the program marked, what its ranks did together,
//!                                  what devices measured: by role, for all reports
//!  memory/                         what is held on which device, from what calls do to memory
//!  waits                           which call learned that a command had ended
//!  os/, system                     what the operating system did to threads, from a kernel trace
//!  owners                          which API's queues a handle or a call is about
//!  demangle, titles                names of kernels, devices and queues
//!  inside/, placed/                what went on inside of kernels, from records of their warps, and where that is on
//!                                  the host's time line
//!  layers                          which API called which, and how commands came to their devices
//!  outermost                       which calls are the program's own
//!  stacks                          the native and Python stacks of calls
//!  budget                          threads that recorded less, to keep within a budget
//!  capture                         the parts of a run that were recorded
//!  sums                            a whole run in sums, as saved tallies have it
//!  follow                          a trace that is being recorded: each look costs what is new
//!  watch                           long work asks whether to go on
//! ```
//!
//! Reports (crate `hetrace-report`) and exports (`hetrace-export`) stand on it side by side.
//!
//! Rules:
//! - It knows no API: what a call means, the model in the trace says.
//! - It reads a folder in [`trace::Trace::open`] and [`follow::Follower`], and does no other I/O.
//! - Memory grows with what is open at a time (calls, threads, queues, names), with
//!   ranges, collectives (a million of each thread are remembered), telemetry and changes of
//!   threads' states, not with calls and commands.
//! - No trace makes it panic. What is lost, cut, unfinished or unmatched is
//!   counted, and whoever reads it is handed the counts.

pub mod args;
pub mod budget;
pub mod capture;
pub mod collectives;
pub mod demangle;
pub mod facts;
pub mod follow;
pub mod hash;
pub mod history;
pub mod inside;
pub mod layers;
pub mod memory;
pub mod milestones;
pub mod os;
pub mod outermost;
pub mod owners;
pub mod placed;
pub mod probes;
pub mod ranges;
pub mod samples;
pub mod sent;
pub mod spans;
pub mod stacks;
pub mod sums;
pub mod system;
pub mod telemetry;
pub mod text;
pub mod titles;
pub mod trace;
pub mod values;
pub mod waits;
pub mod watch;

pub use watch::{Stopped, Watch};
