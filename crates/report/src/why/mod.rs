//! Where the time of a device went, and why it was idle.
//!
//! ```text
//!  host calls ──► threads   what each thread was doing, for a while back
//!                    │ ▲
//!  commands ──► device ──► gaps    each gap cut into parts, each part with its cause
//!        │        └─ sweep, coverage, histogram   busy, overlap, depth, latency
//!        ├──► waits    what calls that wait were waiting for (t0, t1, t2)
//!        └──► path     what the end had to wait for, all the way back
//! ```
//!
//! Beside it stands `inside`: why kernels are slow that were recorded inside.
//!
//! One pass in the order of time. A command is seen when it starts, so all that
//! the host did until then is known, and a gap can be explained at once. What is
//! remembered is bounded; where that was not enough, the report says so.
//! `docs/why.md` has the rules.

mod bounds;
mod causes;
mod collect;
mod coverage;
mod device;
mod gaps;
mod histogram;
mod host;
mod independent;
mod inside;
mod ledger;
mod path;
mod render;
mod report;
mod reporter;
mod rows;
mod run;
mod sampled;
mod savings;
mod sharing;
mod signals;
mod states;
mod steps;
mod summary;
mod sweep;
mod threads;
mod untimed;
mod verdict;
mod waits;
mod wakes;

pub use render::TextOptions;
pub use rows::{
    Around, BehindRow, BoundRow, CauseRow, CostRow, CpuRow, DeviceRow, Distribution, GapPart, GapRow,
    InsideCauseRow, InsideRow, MissingRow, OnceRow, PathRow, PathShare, Report, SavingRow, SharedRow,
    SiteRow, StartUpRow, SteadyRow, TransferRow, VerdictRow, WaitRow, WorkRow,
};
pub use run::{why, why_watched};

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Devices of this number, or with this in their name or UUID; all if none.
    pub device: Option<String>,
    /// From so many nanoseconds after the trace's first event.
    pub from: Option<u64>,
    /// Until so many nanoseconds after it.
    pub to: Option<u64>,
    /// List each gap of at least so many nanoseconds.
    pub gaps: Option<u64>,
}

/// A part of the trace's time, in nanoseconds on its clock.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: u64,
    to: u64,
}

impl Window {
    /// What of a time is inside; empty if nothing is.
    fn clip(self, start: u64, end: u64) -> (u64, u64) {
        let start = start.max(self.from);
        (start, end.min(self.to).max(start))
    }

    /// How much of a time is inside.
    fn of(self, start: u64, end: u64) -> u64 {
        let (start, end) = self.clip(start, end);
        end - start
    }
}
