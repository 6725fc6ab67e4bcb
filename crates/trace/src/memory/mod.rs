//! High-water marks of memory, by device.
//!
//! ```text
//!  table    what each function does to memory: from roles and tables of the models
//!    │
//!  calls    steps (made, released, what is current), by the
//!    │      outermost call that does such a thing
//!  ledger   all steps in the order of time: what is held where, and how much it was at most
//! ```
//!
//! A call that says on which device a thread's memory is may be of another API, and memory that
//! one thread made may be freed by another one, so steps are put into order before they count.
//! The tally's walk for it is one of its own, beside the one that sums up: it passes over all other calls.
//! A timeline takes the steps as soon as they are certain, and draws what they change.

mod calls;
mod ledger;
mod rows;
mod sites;
mod table;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

pub use calls::Memory;
pub use ledger::{Change, Ledger};
pub use rows::{MemoryProcessRow, MemoryReleases, MemoryRow};
pub use table::Table;

use crate::spans::{At, Call, Open, Visitor, walk_part};
use crate::trace::{Only, Trace};
use crate::watch::{Stopped, Watch};

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
            // The events are counted by who reads all of them.
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

/// What was held, from one walk over the calls that concern memory.
///
/// # Errors
/// When the watch says so.
pub fn ledger<'t>(
    trace: &'t Trace,
    table: &'t Table<'t>,
    watch: Option<Watch<'_>>,
) -> Result<Ledger<'t>, Stopped> {
    let only = Only::new(trace, |function| table.needs(function));
    let mut alone = Alone { memory: Memory::new(trace, table), watch, left: WATCHED };
    match walk_part(trace.cursor_of_only(&only), &mut alone) {
        ControlFlow::Continue(_) => Ok(alone.memory.finish()),
        ControlFlow::Break(stopped) => Err(stopped),
    }
}
