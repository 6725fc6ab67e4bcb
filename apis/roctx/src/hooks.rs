//! Ranges and calls that begin and end capture windows (`--range`, `--on-calls`). Named `hook` in `semantics.toml`.

use std::ptr::null_mut;

use hetrace_interpose::ranges::named;
use hetrace_interpose::window;

use crate::generated::real;

/// ROCTX has no domains.
const DOMAIN: u64 = 0;
/// In place of a thread's id: all threads of the process.
const ALL: u64 = 0;

pub unsafe fn roctxRangePushA(_: u64, message: *const i8) -> i32 {
    // SAFETY: the program's own argument.
    let level = unsafe { real::roctxRangePushA(message) };
    if level >= 0 {
        // SAFETY: the program's text, which the real function has read.
        unsafe { named::pushed(DOMAIN, level, message, null_mut()) };
    }
    level
}

pub unsafe fn roctxRangePop(_: u64) -> i32 {
    // SAFETY: no arguments.
    let level = unsafe { real::roctxRangePop() };
    named::popped(DOMAIN, level);
    level
}

pub unsafe fn roctxRangeStartA(_: u64, message: *const i8) -> u64 {
    // SAFETY: the program's own argument.
    let id = unsafe { real::roctxRangeStartA(message) };
    // SAFETY: the program's text, which the real function has read.
    unsafe { named::started(id, message, null_mut()) };
    id
}

pub unsafe fn roctxRangeStop(_: u64, id: u64) {
    named::ended(id);
    // SAFETY: the program's own argument.
    unsafe { real::roctxRangeStop(id) }
}

/// With `--on-calls` the program says by these what is recorded: in all threads, since a window is one of the session.
pub unsafe fn roctxProfilerPause(_: u64, thread: u64) -> i32 {
    asked(thread, false);
    // SAFETY: the program's own argument.
    unsafe { real::roctxProfilerPause(thread) }
}

pub unsafe fn roctxProfilerResume(_: u64, thread: u64) -> i32 {
    asked(thread, true);
    // SAFETY: the program's own argument.
    unsafe { real::roctxProfilerResume(thread) }
}

fn asked(thread: u64, open: bool) {
    if thread == ALL {
        window::asked(open);
    }
}
