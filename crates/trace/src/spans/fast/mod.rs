//! A walk for sums: the same calls, without the events.
//!
//! Who only sums up calls needs neither what they were called with nor the order between
//! threads. So this walk scans the streams ([`hetrace_ctf::read::Scanner`]) one after the other,
//! a stretch at a time, into digests of 16 bytes, and lets each thread's digests through
//! its stack of open calls:
//!
//! ```text
//!  stream 1 ──► digests ┐  up to the time      ┌► thread 1: stack ─► calls
//!  stream 2 ──► digests ┼─ that all streams ───┤
//!  stream 3 ──► digests ┘  have reached        └► thread 2: stack ─► calls
//!                └─ commands and such go to the sums at once, as whole events
//! ```
//!
//! Several processors take a slice of the time each, over all streams. A slice does not
//! know what calls were open when it begins; what that leaves undecided is decided
//! when the slices are joined (`join.rs`).
//!
//! A trace that grows is walked in steps ([`Steps`]): what is open is kept from one to the next.
//!
//! What calls there are is decided by the same `Stack` as in [`super::walk`], and
//! a test compares the two.

mod digest;
mod digester;
mod ends;
mod follow;
mod input;
mod join;
mod rounds;
mod slices;
mod table;
mod thread;

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::calls::{Call, Fold, Open, Unfinished};
use super::commands::Command;
use super::summary::Summary;
use super::walk::At;
use crate::trace::{FunctionId, Thread, ThreadId, Trace};
use crate::values::{Plans, Values};

pub use follow::{Ahead, Steps};

/// Why a fast walk did not come to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The sums wanted no more.
    Stopped,
    /// The trace is not one for a fast walk; what it has shown so far does not count.
    Unfit,
}

/// Shows all calls and commands of a trace to several sums at the same time where there
/// are several processors, and adds these up; to so many, if a number is given. Calls of the functions
/// that `noted` is for are shown with their values.
pub fn walk<'t, B: CallSink + Send>(
    trace: &'t Trace,
    number: Option<usize>,
    noted: &Plans<'t>,
    new: &(impl Fn() -> B + Sync),
) -> Result<(B, Summary), Ended> {
    if let Some(slices) = slices::cut(trace, number) {
        match join::joined(trace, &slices, noted, new) {
            Err(Ended::Unfit) => {}
            done => return done,
        }
    }
    join::joined(trace, &[slices::WHOLE], noted, new)
}

/// Where a thread goes on in a later slice.
#[derive(Clone, Copy, Debug)]
pub struct Border {
    /// Its number in the parts before.
    pub here: ThreadId,
    /// Calls that are open around all that the slice has.
    pub depth: u32,
}

/// A call without calls inside, which ended well.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Of which function.
    pub function: FunctionId,
    /// When it began.
    pub start: u64,
    /// How long it took, ns.
    pub time: u32,
    /// What of that is the tracer's, ns; no more than that.
    pub cost: u32,
}

/// Takes calls without calls inside, one by one: nearly all calls. It is no closure, as the loop over millions of them has
/// to have it inlined.
pub trait Leaves {
    /// A call of the thread.
    fn take(&mut self, leaf: Leaf);
}

/// Receives calls in the order of each thread, and commands in the order of each stream.
pub trait CallSink {
    /// What is kept of a command for others that differ from it in nothing but their times.
    type Known: Default;

    /// What follows is of this thread, until another is named.
    fn thread(&mut self, id: ThreadId, thread: &Thread);

    /// What takes calls of the thread that ended well, without calls inside.
    fn leaves(&mut self, thread: ThreadId) -> impl Leaves;

    /// Any other call that ended.
    fn call(&mut self, call: &Call);

    /// A run of equal calls.
    fn fold(&mut self, fold: &Fold);

    /// A call without an end.
    fn unfinished(&mut self, call: &Unfinished);

    /// A call that is shown with its values begins.
    fn noted_entry(&mut self, call: &Open, values: &Values<'_>);

    /// It ends; as a call that ended it was seen right before.
    fn noted_exit(&mut self, call: &Call, values: &Values<'_>);

    /// An exit of a thread's call that began before the slice, or of none: it is seen when
    /// the slices are joined.
    fn noted_undecided(&mut self, thread: ThreadId);

    /// What follows is a slice of time that is not the first.
    fn begin_later(&mut self);

    /// A command, of whatever thread. `known` is as it was left for the last one that this one differs from in nothing but
    /// its times, or as by default.
    fn command(&mut self, at: At<'_>, command: &Command<'_>, known: &mut Self::Known);

    /// A call of a function without a model.
    fn unknown(&mut self, api: &str, function: &str);

    /// An event of another kind.
    fn other(&mut self, event: &Event<'_, '_>);

    /// So many more events have been read: whether to go on.
    fn watch(&mut self, events: u64) -> ControlFlow<()>;

    /// Adds the sums of another part of the trace, whose threads are `there`; `here` numbers
    /// a thread in this part.
    fn merge(&mut self, other: Self, there: &[Thread], here: &mut dyn FnMut(&Thread) -> ThreadId);

    /// The other part's calls of earlier slices have ended. `borders` are those of the threads there, by
    /// number.
    ///
    /// # Errors
    /// If only a walk without slices can find the sums.
    fn joined(&mut self, borders: &[Border]) -> Result<(), Ended>;
}
