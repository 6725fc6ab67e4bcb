//! Calls that come before this library was started.
//!
//! The dynamic loader starts libraries in an order of its own. One that is linked
//! to the API, and calls it from a constructor, often comes before us; so the
//! first call or query starts us, if we have not started yet: also where we wait because nothing
//! of the API was there ([`crate::library::started`]). One byte shows wrappers all
//! that they must know before they go the usual way.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::errno::ErrnoGuard;

/// Not started yet.
const EARLY: u8 = 2;
/// There are several copies of the API's library.
const SEVERAL: u8 = 1;

/// 0 in the usual case. The entries of the copies read it too.
pub static STATE: AtomicU8 = AtomicU8::new(EARLY);

/// Whether a wrapper has to see to something first: [`crate::library::scope`].
#[inline(always)]
pub fn unusual() -> bool {
    STATE.load(Ordering::Relaxed) != 0
}

/// Starts the library, unless it has been.
#[inline]
pub(crate) fn start(loaded: extern "C" fn()) {
    if STATE.load(Ordering::Acquire) & EARLY != 0 {
        start_now(loaded);
    }
}

#[cold]
fn start_now(loaded: extern "C" fn()) {
    // What `loaded` itself calls, and other threads meanwhile, go on without.
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !BEGUN.swap(true, Ordering::AcqRel) {
        let _errno = ErrnoGuard::new();
        loaded();
    }
}

/// Whether the library was started.
pub(crate) fn is_started() -> bool {
    STATE.load(Ordering::Acquire) & EARLY == 0
}

/// Starts the library, unless it has been; if another thread is at it, waits until it has. Not for ever: a signal
/// handler may have interrupted that thread, or it has no processor.
pub(crate) fn start_and_wait(loaded: extern "C" fn()) {
    start(loaded);
    _ = (0..100_000).any(|_| {
        let started = is_started();
        if !started {
            std::hint::spin_loop();
        }
        started
    });
}

/// The library was started.
pub(crate) fn over() {
    STATE.fetch_and(!EARLY, Ordering::AcqRel);
}

/// Whether there are several copies.
#[inline(always)]
pub(crate) fn several() -> bool {
    STATE.load(Ordering::Acquire) & SEVERAL != 0
}

/// From now on there are. Returns whether there were before.
pub(crate) fn set_several() -> bool {
    STATE.fetch_or(SEVERAL, Ordering::AcqRel) & SEVERAL != 0
}
