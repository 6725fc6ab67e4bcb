//! What a program says of itself to hetrace: ranges, marks, names of threads, and when to record.
//!
//! ```
//! use hetrace_client as hetrace;
//!
//! fn step(number: u64) {
//!     let _range = hetrace::range(c"step"); // ends where `_range` is dropped
//!     hetrace::mark(c"number", number);
//! }
//! # step(1);
//! ```
//! In a program that `hetrace run` started, the first call loads hetrace's library; in any other, each call is one
//! load and a branch that is not taken. Nothing is linked but the C library, which std programs have. It is what
//! `include/hetrace.h` is for C; both may be in one program.
//!
//! Texts are `&CStr`, `c"like this"`: nothing is copied or allocated to pass them. Ask [`is_traced`] before making texts.
//! Any thread may call anything at any time, but the first call of all should not be made in a signal handler, as it
//! loads a library. Static programs are not traced, nor are those with more rights than their user (setuid).
#![no_std]
#![cfg_attr(not(target_os = "linux"), forbid(unsafe_code))]

use core::ffi::CStr;
use core::marker::PhantomData;

#[cfg(target_os = "linux")]
mod library;

#[cfg(not(target_os = "linux"))]
mod library {
    //! Elsewhere nothing is traced.

    /// Has no values.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Functions {}

    pub(crate) fn on() -> Option<Functions> {
        None
    }
}

use library::on;

/// Returns whether this process is traced.
#[inline]
#[must_use]
pub fn is_traced() -> bool {
    on().is_some()
}

/// A range of this thread; it ends when this is dropped. Ranges nest: drop them in the reverse order, as variables are.
#[derive(Debug)]
#[must_use = "the range ends when this is dropped: `let _range = …`, not `let _ = …`"]
pub struct Range {
    /// Its end belongs to the thread that began it.
    thread: PhantomData<*const ()>,
}

/// Begins a range of this thread.
#[inline]
pub fn range(name: &CStr) -> Range {
    if let Some(on) = on() {
        on.push(name);
    }
    Range { thread: PhantomData }
}

impl Drop for Range {
    #[inline]
    fn drop(&mut self) {
        if let Some(on) = on() {
            on.pop();
        }
    }
}

/// A range that any thread of the process may end; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the range ends when this is dropped: `let _range = …`, not `let _ = …`"]
pub struct Started {
    id: u64,
}

/// Begins a range that any thread may end.
#[inline]
pub fn start(name: &CStr) -> Started {
    Started { id: on().map_or(0, |on| on.start(name)) }
}

impl Drop for Started {
    #[inline]
    fn drop(&mut self) {
        if let Some(on) = on().filter(|_| self.id != 0) {
            on.end(self.id);
        }
    }
}

/// Marks a moment, with a number.
#[inline]
pub fn mark(name: &CStr, value: u64) {
    if let Some(on) = on() {
        on.mark(name, value);
    }
}

/// Names this thread in the trace; the system's name of it stays.
#[inline]
pub fn name_thread(name: &CStr) {
    if let Some(on) = on() {
        on.name_thread(name);
    }
}

/// In a run with `--on-calls`: begins to record, in all processes of the run.
#[inline]
pub fn capture_start() {
    if let Some(on) = on() {
        on.capture_start();
    }
}

/// In a run with `--on-calls`: stops recording. Ranges are marked all the same.
#[inline]
pub fn capture_stop() {
    if let Some(on) = on() {
        on.capture_stop();
    }
}

/// Asks for a snapshot of what was recorded last, and does not wait for it. Without a session that keeps that, nothing
/// happens.
#[inline]
pub fn snapshot() {
    if let Some(on) = on() {
        on.snapshot();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_tracer_nothing_happens() {
        assert!(!is_traced());
        let outer = range(c"outer");
        mark(c"mark", 1);
        assert_eq!(start(c"started").id, 0);
        drop(outer);
        name_thread(c"name");
        capture_start();
        capture_stop();
        snapshot();
    }
}
