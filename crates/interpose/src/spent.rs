//! What the library takes of the program's time beside its calls: to begin, for memory to record into, and in a
//! collector of device times, which works when it likes. The sums stand in the arena, one for each kind, and come into
//! the manifest.

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::abi::ArenaHeader;
use hetrace_ring::clock;

use crate::arena;
use crate::own;

/// Ticks that the library took to begin, until the arena has them: there may be none yet, or never one.
static LOADING: AtomicU64 = AtomicU64::new(0);

/// Runs what the library does when it is loaded, and counts it. The arena's own time counts apart.
pub fn loading(loaded: extern "C" fn()) {
    let setup = || own::process().and_then(arena::header).map_or(0, |h| h.setup_ticks.load(Ordering::Relaxed));
    let (began, before) = (clock::ticks(), setup());
    loaded();
    let ticks = since(began).saturating_sub(setup().saturating_sub(before));
    LOADING.fetch_add(ticks, Ordering::Relaxed);
    say_loading();
}

/// Puts what loading took into the arena, once, if there is one by now.
pub(crate) fn say_loading() {
    if let Some(header) = own::process().and_then(arena::header) {
        header.loading_ticks.fetch_add(LOADING.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Ticks since then; 0 if the counter of another processor is behind.
fn since(began: u64) -> u64 {
    clock::ticks().wrapping_sub(began).cast_signed().max(0).cast_unsigned()
}

/// For what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// Making memory to record into, while a thread of the program waits.
    Setup,
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
            Spent::Setup => &header.setup_ticks,
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
    let ticks = since(began);
    // Not before: the work may have made the arena, or may be a fork's child by now.
    if let Some(header) = own::process().and_then(arena::header) {
        what.word(header).fetch_add(ticks, Ordering::Relaxed);
    }
    result
}
