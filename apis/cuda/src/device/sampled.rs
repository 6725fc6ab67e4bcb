//! Timing a few launches of each kernel and counting the others.
//!
//! The first launch of a kernel is timed and stands for itself: it often pays for
//! what is made ready once, and no other launch is like it. Of each `every` launches
//! after it one is timed, at a place chosen anew each time, so that a program's
//! own rhythm can't hide some launches for ever; it stands for `every` launches.
//! [`CountRecord`]s have the true number of launches.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::ring::abi::{CountRecord, special};

use super::functions::{self, Function};
use super::record::{now, send};

/// Nanoseconds between two reports.
const PERIOD: u64 = 250_000_000;

/// Which launches are timed: one of so many; 0 or 1: all.
static EVERY: AtomicU32 = AtomicU32::new(0);
/// When counts were last reported.
static REPORTED: AtomicU64 = AtomicU64::new(0);

pub fn every(every: u32) {
    EVERY.store(every, Ordering::Relaxed);
}

/// Counts a launch. Returns for how many it stands if it is to be timed, and 0
/// if not; `None` if launches are not sampled.
#[inline]
pub fn count(function: &Function) -> Option<u32> {
    let every = EVERY.load(Ordering::Relaxed);
    if every <= 1 {
        return None;
    }
    let number = function.launches.fetch_add(1, Ordering::Relaxed);
    Some(weight(function.id, number, every))
}

/// Takes back what [`count`] counted: the launch failed.
pub fn uncount(function: &Function) {
    function.launches.fetch_sub(1, Ordering::Relaxed);
}

fn weight(function: u64, number: u64, every: u32) -> u32 {
    let Some(later) = number.checked_sub(1) else { return 1 };
    let (round, place) = (later / u64::from(every), later % u64::from(every));
    // Any mixing will do that has no rhythm.
    let mut mixed = (round ^ function << 40).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    if (mixed >> 33) % u64::from(every) == place { every } else { 0 }
}

/// Reports how many launches there were, if that has changed: once per period,
/// or at once if it is the last time.
pub fn report_counts(last: bool) {
    if EVERY.load(Ordering::Relaxed) <= 1 {
        return;
    }
    let (now, then) = (now(), REPORTED.load(Ordering::Relaxed));
    if !last && now.saturating_sub(then) < PERIOD {
        return;
    }
    if REPORTED.compare_exchange(then, now, Ordering::Relaxed, Ordering::Relaxed).is_err() && !last {
        return;
    }
    for function in functions::all() {
        let launches = function.launches.load(Ordering::Relaxed);
        if function.reported.swap(launches, Ordering::Relaxed) != launches {
            let timed = function.timed.load(Ordering::Relaxed);
            send(special::COUNT, &CountRecord { function: function.id, launches, timed, bytes: 0 }, c"");
        }
    }
}
