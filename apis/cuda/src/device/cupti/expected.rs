//! Which calls CUPTI still owes a record. What it keeps when a process ends without
//! warning must at least be known to be missing, so each call that will surely have a
//! record is counted in its ring when it begins, and again when the first record of it
//! comes: in shared memory, which outlives the process.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use hetrace_interpose::commands::Mapped;
use hetrace_interpose::count_commands;

use crate::device::events::Wanted;
use crate::device::slot;
use crate::device::streams::{self, State, meant};

/// Bits of the word of [`crate::device::slot`]: times are far below.
/// The call has a record if it is accepted.
pub const SURE: u64 = 1 << 63;
/// It has some unless there is nothing to do: a graph may be empty, a copy may stay
/// in the host. Not missed once CUPTI has given all it had.
pub const LIKELY: u64 = 1 << 62;
/// In place of both, without a time: the call is the tracer's own, and its records are none of the program's.
pub const OWN: u64 = SURE | LIKELY;
/// The time.
pub const TIME: u64 = LIKELY - 1;

/// Calls by the low bits of their correlation ids, which count up. As many as there
/// can be records in flight; an id that comes too early leaves one counted too many.
///
/// A byte each, so that a launch needs no more than a store: an instruction that locks
/// would wait for all stores before it, into a ring that another processor has read.
struct Calls<const ALL: usize>(Mapped<AtomicU8, ALL>);

impl<const ALL: usize> Calls<ALL> {
    const fn new() -> Self {
        Calls(Mapped::new())
    }

    #[inline(always)]
    fn add(&self, id: u64) {
        if let Some(place) = self.0.or_map().get(id as usize % ALL) {
            place.store(1, Ordering::Relaxed);
        }
    }

    /// Returns whether it was there.
    fn remove(&self, id: u64) -> bool {
        self.0
            .all()
            .get(id as usize % ALL)
            .is_some_and(|place| place.load(Ordering::Relaxed) != 0 && place.swap(0, Ordering::Relaxed) != 0)
    }

    fn count(&self) -> u64 {
        self.0.all().iter().map(|place| u64::from(place.load(Ordering::Relaxed))).sum()
    }

    fn clear(&self) -> u64 {
        let there = self.0.all().iter().filter(|place| place.load(Ordering::Relaxed) != 0);
        there.map(|place| u64::from(place.swap(0, Ordering::Relaxed))).sum()
    }
}

static SURELY: Calls<{ 4 << 20 }> = Calls::new();
static LIKELY_ONES: Calls<{ 64 << 10 }> = Calls::new();
/// Records that CUPTI itself has dropped: they are counted elsewhere.
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// The program has begun to capture a stream at least once.
static CAPTURES: AtomicBool = AtomicBool::new(false);

/// This is a child, whose calls have no records.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Calls of this process are to be counted, and not those of children that it forks.
pub fn start() {
    extern "C" fn forked() {
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: a function that lives as long as this library.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// The program captures a stream: from now on each is asked.
pub fn capture_begins() {
    CAPTURES.store(true, Ordering::Relaxed);
}

/// What may be expected of a call.
#[inline(always)]
pub fn mark(wanted: &Wanted, bytes: impl FnOnce() -> usize) -> u64 {
    let mark = match wanted.kind {
        1 => SURE,                                     // kernel
        15 => LIKELY,                                  // graph
        2..=4 if wanted.memory.contains(&0) => LIKELY, // read, write, copy
        2..=5 => SURE * u64::from(bytes() > 0),        // and fill
        _ => 0,
    };
    if mark != 0 && CAPTURES.load(Ordering::Relaxed) && is_captured(wanted) { 0 } else { mark }
}

#[cold]
fn is_captured(wanted: &Wanted) -> bool {
    streams::state(meant(wanted.queue, wanted.per_thread)) == State::Captured
}

/// The call with that id has begun, on this thread.
#[inline]
pub fn begun(id: u32, mark: u64) {
    if mark != 0 && !FORKED.load(Ordering::Relaxed) {
        if mark & SURE != 0 {
            SURELY.add(id.into())
        } else {
            LIKELY_ONES.add(id.into())
        }
        slot::set_id(id.into());
        count_commands(1, 0);
    }
}

/// The call of this thread that was begun last was not accepted.
#[cold]
pub fn refused() {
    over(slot::id());
}

/// There will be no record, or no further one, without which something were missing.
pub fn over(id: u64) {
    if id != 0 && !FORKED.load(Ordering::Relaxed) && (SURELY.remove(id) || LIKELY_ONES.remove(id)) {
        count_commands(0, 1);
    }
}

/// CUPTI says that it had no room for so many.
pub fn dropped(records: u64) {
    DROPPED.fetch_add(records, Ordering::Relaxed);
}

/// CUPTI has given all that it had. Calls that only were likely to have records have none.
pub fn settle() {
    let counted = match DROPPED.swap(0, Ordering::Relaxed) {
        0 => 0,
        dropped => dropped.min(SURELY.count()),
    };
    count_commands(0, LIKELY_ONES.clear() + counted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_removed_once() {
        let calls: Calls<128> = Calls::new();
        (1..=100).for_each(|id| calls.add(id));
        assert!(calls.remove(7) && !calls.remove(7) && !calls.remove(101));
        assert_eq!(calls.count(), 99);
        // 129 has the place of 1.
        calls.add(129);
        assert_eq!((calls.count(), calls.clear(), calls.count()), (99, 99, 0));
    }
}
