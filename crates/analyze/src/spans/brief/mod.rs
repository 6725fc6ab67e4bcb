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
//! What calls there are is decided by the same [`Stack`](super::stack::Stack) as in [`super::walk`], and
//! a test compares the two.

mod digest;
mod feed;
mod rounds;
mod table;

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::calls::{Call, Fold, Unfinished};
use super::commands::Command;
use super::walk::At;
use crate::trace::{Thread, ThreadId};

pub(crate) use rounds::{Ended, brief};

/// Is told calls in the order of each thread, and commands in the order of each stream.
pub(crate) trait Brief {
    /// What follows is of this thread, until another is named.
    fn thread(&mut self, id: ThreadId, thread: &Thread);

    /// A call that ended.
    fn call(&mut self, call: &Call);

    /// A run of equal calls.
    fn fold(&mut self, fold: &Fold);

    /// A call without an end.
    fn unfinished(&mut self, call: &Unfinished);

    /// A command, of whatever thread.
    fn command(&mut self, at: At<'_>, command: &Command<'_>);

    /// A call of a function without a model.
    fn unknown(&mut self, api: &str, function: &str);

    /// An event of another kind.
    fn other(&mut self, event: &Event<'_, '_>);

    /// So many more events have been read: whether to go on.
    fn watch(&mut self, events: u64) -> ControlFlow<()>;
}
