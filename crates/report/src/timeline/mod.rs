//! A time line for Perfetto: processes with their threads and devices, calls and
//! commands as slices, ranges of the program, counters, and arrows.
//!
//! ```text
//! CPUs                       which threads of the program had them, if a kernel trace is there
//! GPU 0 Toy GPU              telemetry of the machine: counters, reasons for lower clocks
//! process 7 (./app)
//! ├── thread 7               calls of all APIs, one inside the other
//! │   │   ▐ cudaLaunchKernel      ▌        ▐ cudaStreamSynchronize ▌
//! │   │     ▐ cuLaunchKernel   ▌              ▐ cuStreamSynchronize ▌
//! │   ├── state              what the operating system did to it, if a kernel trace is there
//! │   ├── CPU samples        instants: where it was while it had a CPU, if that was sampled
//! │   └── NVTX               ranges that it pushed, and its marks; a row for each domain
//! ├── NVTX: started ranges   of any thread; a row for each domain
//! ├── app: queue length      counters that the program has itself
//! └── Toy GPU
//!     ├── kernels, copies…   what ran, of all queues together
//!     ├── stream 7           commands, with arrows from their calls and to waits
//!     ├── inside kernels     thread blocks and warps by multiprocessor, where that was recorded
//!     └── …                  counters: commands in flight, bytes per second
//! ```
//!
//! Rules that hold in every file:
//! - Slices of one row nest or do not touch: what overlaps lies on rows of the
//!   same name and parent, which Perfetto shows as one.
//! - A call lies inside of the one that was open on the thread when it began. If the
//!   outer one ends first (its API's times are rounded otherwise, or an end was
//!   lost), the inner ones end with it.
//! - Calls that begin or end ranges, or change counters of the program, are shown as the ranges and counters only.
//! - An arrow goes from a call to each command that it caused, of a graph to the
//!   first node only, and from a command to the call that waited for it, as
//!   [`hetrace_trace::waits`] finds it. Of all commands of a queue that ended during a
//!   wait, the last one has the arrow. `flows.rs` has the details.
//! - Rows of kernels, copies and fills repeat the queues' commands without
//!   arguments and arrows, so that one look shows what a device does; a file has
//!   about 60 bytes more for each command because of them.
//! - A collective has an arrow to the first enqueuing call inside of it, or else
//!   inside of the call that ended its group.
//! - Memory that a program has allocated is a counter of its device for each kind, from the ledger that
//!   a tally's high-water marks are of: what is freed has ended when the call that frees it began.
//! - A large time line is cut into parts, each a whole file: what is open at the border ends
//!   in the one (`goes on`) and begins anew in the next (`continued`), counters are restated,
//!   arrows stay within. A command that was enqueued before the border and begins after it is
//!   in flight only from the border on, and so begins a run of equal calls that ends behind it.
//!   A window is one such part, or several.
//! - Memory grows with what is open and with the kinds of names, not with events. Beyond
//!   65536 names are written out wherever they are needed.
//!
//! <https://perfetto.dev/docs/reference/trace-packet-proto> has the numbers of
//! the fields. Times are CLOCK_MONOTONIC's.

mod annotations;
mod calls;
mod commands;
mod devices;
mod flows;
mod inside;
mod kernels;
mod lanes;
mod memory;
mod monitored;
mod names;
mod packets;
mod part;
mod proto;
mod ranges;
mod remarks;
mod run;
mod samples;
mod sheet;
mod states;
mod steps;
mod tracks;
mod traits;
mod window;

pub use part::{Drawn, Error, INSIDE_SLICES, Options, PART_BYTES, PART_SLICES, Part, Parts, Watch};
pub use run::{timeline, timeline_in_parts};
