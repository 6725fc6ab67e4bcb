//! High-water marks of memory, by device.
//!
//! ```text
//!  table    what each function does to memory: from roles and tables of the models
//!    │
//!  calls    per part of the trace: steps (made, released, what is current), by the
//!    │      outermost call that does such a thing
//!  ledger   all steps in the order of time: what is held where, and how much it was at most
//! ```
//!
//! Calls of a thread that say on which device its memory is may stand in another stream, and
//! memory that one thread made may be freed by another one, so steps are put into order before
//! they count; streams can still be read at the same time. Steps are few. If there are too many
//! to be kept, the caller has to walk once more in the order of time, which needs no room.

mod calls;
mod ledger;
mod sites;
mod table;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

pub(super) use calls::Memory;
pub(super) use ledger::Ledger;
pub(super) use table::Table;

use super::collect::Stopped;
use super::query::Watch;
use crate::spans::{At, Call, Open, Visitor, walk_part};
use crate::trace::Trace;

/// Events between two questions whether to go on.
const WATCHED: u32 = 1 << 16;

/// A walk that looks for nothing else.
struct Alone<'t, 'w> {
    memory: Memory<'t>,
    watch: Option<Watch<'w>>,
    left: u32,
}

impl Visitor for Alone<'_, '_> {
    type Break = Stopped;

    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.left -= 1;
        if self.left == 0 {
            self.left = WATCHED;
            // The events were counted when they were read first.
            if self.watch.is_some_and(|watch| watch(0).is_break()) {
                return ControlFlow::Break(Stopped);
            }
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, _: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.memory.entry(call, event);
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.memory.exit(at, call, event);
        ControlFlow::Continue(())
    }
}

/// What is known when all parts have been seen; walks once more if they had too much to keep.
///
/// # Errors
/// When the watch says so.
pub(super) fn ledger<'t>(
    trace: &'t Trace,
    table: &'t Table<'t>,
    memory: Memory<'t>,
    watch: Option<Watch<'_>>,
) -> Result<Ledger<'t>, Stopped> {
    if !memory.overflows() {
        return Ok(memory.finish());
    }
    let mut alone = Alone { memory: Memory::new(trace, table, true), watch, left: WATCHED };
    match walk_part(trace.cursor(), &mut alone) {
        ControlFlow::Continue(_) => Ok(alone.memory.finish()),
        ControlFlow::Break(stopped) => Err(stopped),
    }
}
