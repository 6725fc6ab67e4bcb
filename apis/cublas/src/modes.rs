//! Of which handles scalars are known to be in memory of the host.
//!
//! A table of handles without locks: calls look a handle up, and what is not found is not known. A handle stands in one
//! of a few places that its value chooses; where these are taken it is not known, so that nothing is read of its scalars.
//! Of others nothing is remembered: what is not there may be anything.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Places that the value of a handle chooses: a line of the processor's cache.
const NEAR: usize = 8;
/// Such lines in the table.
const LINES: usize = 128;

/// Places of one line.
#[repr(align(64))]
struct Line([AtomicUsize; NEAR]);

/// Handles whose scalars are in memory of the host; 0 where there is none.
static HOST: [Line; LINES] = [const { Line([const { AtomicUsize::new(0) }; NEAR]) }; LINES];

#[inline(always)]
fn places(handle: usize) -> &'static [AtomicUsize; NEAR] {
    // Handles are addresses of memory that was allocated: what is low says nothing.
    let hash = (handle >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    &HOST[hash % LINES].0
}

/// From now on this handle's scalars are in memory of the host.
pub fn host(handle: usize) {
    if handle == 0 || is_host(handle) {
        return;
    }
    for place in places(handle) {
        if place.compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// From now on nothing is known of it.
pub fn forget(handle: usize) {
    if handle == 0 {
        return;
    }
    for place in places(handle) {
        // All of them: two threads may have entered it at once.
        let _ = place.compare_exchange(handle, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Whether this handle's scalars are known to be in memory of the host.
#[inline(always)]
pub fn is_host(handle: usize) -> bool {
    handle != 0 && places(handle).iter().any(|place| place.load(Ordering::Acquire) == handle)
}
