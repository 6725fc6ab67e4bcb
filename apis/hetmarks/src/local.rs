//! What the functions answer. Nothing real stands behind them, so the generated `real` functions lead here.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_interpose::ranges::{levels, named};
use hetrace_interpose::window;

use crate::generated::prelude::REAL;
use crate::generated::real::known;
use crate::generated::tables::NAMES;

/// All pushed ranges of a thread are nested in each other.
const DOMAIN: u64 = 0;

unsafe extern "C" fn hetrace_push(message: *const i8) -> i32 {
    let level = levels::push(DOMAIN);
    // SAFETY: the program's text.
    unsafe { named::pushed(DOMAIN, level, message, null_mut()) };
    level
}

unsafe extern "C" fn hetrace_pop() -> i32 {
    let level = levels::pop(DOMAIN);
    named::popped(DOMAIN, level);
    level
}

unsafe extern "C" fn hetrace_start(message: *const i8) -> u64 {
    /// A forked child counts on, and is distinguished by its process. 0 stands for no range.
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    // SAFETY: the program's text.
    unsafe { named::started(id, message, null_mut()) };
    id
}

unsafe extern "C" fn hetrace_end(id: u64) {
    named::ended(id);
}

unsafe extern "C" fn hetrace_mark(_: *const i8, _: u64) {}

unsafe extern "C" fn hetrace_name_thread(_: u32, _: *const i8) {}

unsafe extern "C" fn hetrace_capture_start() {
    window::asked(true);
}

unsafe extern "C" fn hetrace_capture_stop() {
    window::asked(false);
}

unsafe extern "C" fn hetrace_snapshot() {
    window::snapshot();
}

/// Leads all wrappers here, before anyone can call one.
pub fn fill() {
    hetrace_interpose::lead! { NAMES, REAL, known:
        hetrace_push hetrace_pop hetrace_start hetrace_end hetrace_mark hetrace_name_thread
        hetrace_capture_start hetrace_capture_stop hetrace_snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_an_implementation() {
        fill();
        for (name, real) in NAMES.iter().zip(&REAL) {
            assert!(!real.get().is_null(), "{name:?}");
        }
    }
}
