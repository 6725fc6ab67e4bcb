//! What the library takes of the program's time beside its calls: to begin, and in a collector of device
//! times, which works when it likes. The sums stand in the arena, one for each kind, and come into the manifest.

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::abi::ArenaHeader;
use hetrace_ring::clock;

use crate::arena;
use crate::own;

/// For what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// Beginning to collect, while the program waits.
    Start,
    /// The collector's work on threads of the program: buffers, flushing, ending.
    Collector,
    /// Its work on a thread of the library's own, for which the program does not wait.
    Apart,
}

impl Spent {
    fn word(self, header: &ArenaHeader) -> &AtomicU64 {
        match self {
            Spent::Start => &header.collector_start_ticks,
            Spent::Collector => &header.collector_ticks,
            Spent::Apart => &header.collector_apart_ticks,
        }
    }
}

/// Does some work, and counts the time that it takes. Not to be nested: that time would count twice.
pub fn spend<R>(what: Spent, work: impl FnOnce() -> R) -> R {
    let began = clock::ticks();
    let result = work();
    let ticks = clock::ticks().wrapping_sub(began).cast_signed().max(0).cast_unsigned();
    // Not before: the work may have made the arena, or may be a fork's child by now.
    if let Some(header) = own::process().and_then(arena::header) {
        what.word(header).fetch_add(ticks, Ordering::Relaxed);
    }
    result
}
