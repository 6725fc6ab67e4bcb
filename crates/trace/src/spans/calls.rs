//! What becomes of entries and exits.

use crate::stacks::StackId;
use crate::trace::{FunctionId, ThreadId};

/// A call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// What is called.
    pub function: FunctionId,
    /// By whom.
    pub thread: ThreadId,
    /// When it began.
    pub start: u64,
    /// In how many other calls of the thread it is; unique among those open.
    pub depth: u32,
    /// The code that makes it.
    pub stack: StackId,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What was called.
    pub function: FunctionId,
    /// By whom.
    pub thread: ThreadId,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Time in it that was not in other recorded calls.
    pub own: u64,
    /// What of its time is the tracer's own, for this call and for all recorded calls inside, at
    /// any depth: no more than leaves each of them what a call takes at least.
    pub cost: u64,
    /// What of `own` is the tracer's own.
    pub own_cost: u64,
    /// In how many other calls of the thread it was.
    pub depth: u32,
    /// The code that made it.
    pub stack: StackId,
    /// The error code, if it failed.
    pub error: Option<i64>,
}

impl Call {
    /// How long it took.
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// How long it would have taken without the tracer, as far as that is known.
    pub fn net_duration(&self) -> u64 {
        self.duration().saturating_sub(self.cost)
    }
}

/// What of a time is the tracer's own, if that is one part in twenty or more.
pub fn notable(cost: u64, time: u64) -> Option<u64> {
    (cost > 0 && cost >= time / 20).then_some(cost.min(time))
}

/// Why there is no end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The trace ends before.
    TraceEnds,
    /// Its exit was lost.
    ExitLost,
    /// Its thread ended before.
    ThreadEnded,
}

impl Why {
    /// Why calls that are open in a stream have no end, where after one packet and thread another
    /// of them comes; none if they may go on. Threads of one packet take turns in other tracers'
    /// streams, so only a new packet says that the thread before has ended.
    pub(super) fn between(before: (u32, ThreadId), now: (u32, ThreadId), gap: bool) -> Option<Self> {
        if before.1 == now.1 {
            gap.then_some(Why::ExitLost)
        } else {
            (before.0 != now.0).then_some(Why::ThreadEnded)
        }
    }

    /// Whether a stream is a thread's from the packet and thread `now` on. If the thread had one of the same
    /// class that is over, that was of another thread with the same ids, which ended: ids are given out again,
    /// and a program that executes another keeps them. A stream's end alone does not say so much: a
    /// thread may wait in a call, and make calls of another class inside, until the trace ends. What begins with the exit of
    /// the innermost call that is open goes on with it: see [`Stack::goes_on`](super::stack::Stack::goes_on).
    pub(super) fn begins(before: Option<(u32, ThreadId)>, now: (u32, ThreadId)) -> bool {
        before.is_none_or(|before| before.1 != now.1)
    }
}

/// A call whose end is not in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// What was called.
    pub function: FunctionId,
    /// By whom.
    pub thread: ThreadId,
    /// When it began.
    pub start: u64,
    /// When it became clear that there will be no end.
    pub until: u64,
    /// What of the time until then is the tracer's own.
    pub cost: u64,
    /// In how many other calls of the thread it was.
    pub depth: u32,
    /// The code that made it.
    pub stack: StackId,
    /// Why.
    pub why: Why,
}

/// An exit without an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// What returned.
    pub function: FunctionId,
    /// Whose it was.
    pub thread: ThreadId,
    /// When.
    pub end: u64,
    /// The error code, if it failed.
    pub error: Option<i64>,
}

/// Calls of a function in one record: a run of equal polls, or calls that were added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// What was called.
    pub function: FunctionId,
    /// By whom.
    pub thread: ThreadId,
    /// How many calls.
    pub count: u64,
    /// When the first began.
    pub first: u64,
    /// When the last ended.
    pub last: u64,
    /// Time in all of them.
    pub total: u64,
    /// Standard error of that, where only some of the calls were timed; else 0.
    pub total_error: u64,
    /// What of it is the tracer's own.
    pub cost: u64,
    /// In how many other calls they were: of those that were open when the record was written, the ones that
    /// began before the first.
    pub depth: u32,
    /// The error code of each of them: a run repeats the call before it. Calls that were added up went well.
    pub error: Option<i64>,
    /// Whether they were added up to keep within a budget: of such calls nothing is known but what is here, and others
    /// may lie between them. Else they are equal polls, one after the other.
    pub summed: bool,
}
