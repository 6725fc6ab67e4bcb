//! What the program has waited for: of which commands it is known that they have ended.

use hetrace_interpose::table::Table;

use crate::generated::prelude::P;

/// Queue, or immediate list → all that was enqueued there before this, in the host's ticks, has ended.
static ENDED: Table<8192> = Table::new();
/// Fence → the queue, and when that was given it.
static FENCED: Table<8192> = Table::new();
static FENCED_AT: Table<8192> = Table::new();

/// The program has waited, since `began`, for all that a queue has. Returns whether that was not known.
pub fn waited(queue: P, began: u64) -> bool {
    let is_news = ENDED.get(queue as u64).is_none_or(|before| before < began);
    if is_news {
        ENDED.set(queue as u64, began);
    }
    is_news
}

/// A fence was put behind what was executed in a queue up to now.
pub fn fenced(fence: P, queue: P, at: u64) {
    if !fence.is_null() {
        FENCED_AT.set(fence as u64, at);
        FENCED.set(fence as u64, queue as u64);
    }
}

/// The program has waited for a fence: queues execute one after the other. Returns whether that is news.
pub fn passed(fence: P) -> bool {
    let known = FENCED.get(fence as u64).zip(FENCED_AT.get(fence as u64));
    known.is_some_and(|(queue, at)| waited(queue as P, at.saturating_add(1)))
}

/// A queue or an immediate list is gone: its handle may come again.
pub fn forget(queue: P) {
    ENDED.remove(queue as u64);
}

/// Whether what was enqueued at this time has ended.
pub fn covers(queue: u64, at: u64) -> bool {
    at == 0 || ENDED.get(queue).is_some_and(|ended| ended > at)
}
