//! Loaders that call us as their layer, and what lies below us there.
//!
//! A loader's place is filled in before its beginning is stored there, by one thread at a time, as loaders start one after another
//! while the program waits for them. No model runs that.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use hetrace_interpose::Object;

use crate::generated::prelude::{P, null_mut};
use crate::generated::tables::DISPATCH;

/// A loader that calls us as its layer: where it begins, and what lies below.
struct Above {
    start: AtomicUsize,
    target: AtomicPtr<P>,
    count: AtomicUsize,
}

static ABOVE: [Above; 4] = [const {
    Above { start: AtomicUsize::new(0), target: AtomicPtr::new(null_mut()), count: AtomicUsize::new(0) }
}; 4];

/// The function below us in the loader that begins at `start`; `None` if that does not call us as its
/// layer.
pub fn below(start: usize, number: usize) -> Option<P> {
    let above = ABOVE.iter().find(|a| start != 0 && a.start.load(Ordering::Acquire) == start)?;
    let place = DISPATCH.iter().position(|n| *n == number)?;
    if place >= above.count.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the loader's table has `count` entries, and stays for ever.
    let below = unsafe { *above.target.load(Ordering::Relaxed).add(place) };
    (!below.is_null()).then_some(below)
}

/// Notes a loader, and the table of what lies below us.
pub fn remember(loader: &Object, target: *const P, count: usize) {
    let gone = |start: usize| Object::holding(start as *const libc::c_void).is_none();
    for above in &ABOVE {
        // A loader starts once, and loaders start one after another. One that was closed has left
        // its place, perhaps to this one.
        let start = above.start.load(Ordering::Acquire);
        if start == 0 || start == loader.start() || gone(start) {
            above.target.store(target.cast_mut(), Ordering::Relaxed);
            above.count.store(count, Ordering::Relaxed);
            above.start.store(loader.start(), Ordering::Release);
            return;
        }
    }
}
