//! Ranges by which the user has chosen a capture window (`--range`): which of them begin and end.
//!
//! In a session without such a window each function here is a load and a branch.

use std::ffi::{CStr, c_void};

use super::levels::NO_TRACKING;
use crate::table::Table;
use crate::{pid, window};

/// A pointer of any kind.
type P = *mut c_void;

/// Registered text → 1 if the window's glob matches it.
static REGISTERED: Table<4096> = Table::new();
/// Started range of the window → process that started it: a forked child must not end its parent's.
static STARTED: Table<4096> = Table::new();

/// Pushed range of the window, by thread, domain and level → process that pushed it. No storage of each thread's own:
/// there is little of that for a library that is loaded late.
static PUSHED: Table<4096> = Table::new();

/// What a pushed range is known by.
fn key(domain: u64, level: i32) -> u64 {
    // SAFETY: no preconditions.
    let thread = unsafe { libc::pthread_self() } as u64;
    let add = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    // Neither of the two keys that a table has a use for itself.
    [domain, u64::from(level.cast_unsigned())].into_iter().fold(thread, add).clamp(1, u64::MAX - 1)
}

/// Whether a range belongs to the window.
///
/// # Safety
/// `text` is NULL or NUL-terminated.
unsafe fn belongs(text: *const i8, registered: P) -> bool {
    let is_named = if !text.is_null() {
        // SAFETY: `text` is not NULL, so it is NUL-terminated.
        window::is_range(unsafe { CStr::from_ptr(text.cast()) }.to_bytes())
    } else if !registered.is_null() {
        REGISTERED.get(registered as u64) == Some(1)
    } else {
        window::is_range(b"")
    };
    is_named && window::range_begins()
}

/// The program has registered a text.
///
/// # Safety
/// `text` is NULL or NUL-terminated.
pub unsafe fn registered(handle: P, text: *const i8) {
    if !window::has_ranges() || text.is_null() {
        return;
    }
    // SAFETY: `text` is not NULL, so it is NUL-terminated.
    if window::is_range(unsafe { CStr::from_ptr(text.cast()) }.to_bytes()) {
        REGISTERED.set(handle as u64, 1);
    }
}

/// A range was pushed.
///
/// # Safety
/// `text` is NULL or NUL-terminated.
#[inline]
pub unsafe fn pushed(domain: u64, level: i32, text: *const i8, registered: P) {
    if window::has_ranges() {
        // SAFETY: `text` is NULL or NUL-terminated.
        unsafe { pushed_in_window(domain, level, text, registered) };
    }
}

/// # Safety
/// `text` is NULL or NUL-terminated.
#[cold]
unsafe fn pushed_in_window(domain: u64, level: i32, text: *const i8, registered: P) {
    // SAFETY: `text` is NULL or NUL-terminated.
    if !unsafe { belongs(text, registered) } {
        return;
    }
    // One that finds no place keeps the window open until the next range behind it begins.
    if level != NO_TRACKING {
        PUSHED.set(key(domain, level), u64::from(pid()));
    }
}

/// A range was popped.
#[inline]
pub fn popped(domain: u64, level: i32) {
    if window::has_ranges() {
        popped_in_window(domain, level);
    }
}

#[cold]
fn popped_in_window(domain: u64, level: i32) {
    let key = key(domain, level);
    if let Some(process) = PUSHED.get(key) {
        PUSHED.remove(key);
        if process == u64::from(pid()) {
            window::range_ends();
        }
    }
}

/// A range was started.
///
/// # Safety
/// `text` is NULL or NUL-terminated.
pub unsafe fn started(id: u64, text: *const i8, registered: P) {
    // SAFETY: `text` is NULL or NUL-terminated.
    if window::has_ranges() && unsafe { belongs(text, registered) } {
        STARTED.set(id, u64::from(pid()));
    }
}

/// A range was ended.
pub fn ended(id: u64) {
    if window::has_ranges() && STARTED.get(id) == Some(u64::from(pid())) {
        STARTED.remove(id);
        window::range_ends();
    }
}
