//! What a runtime reports of tasks.

use std::ffi::{c_int, c_uint, c_void};

use hetrace_interpose::{flags, halves as halves_of};

use crate::callbacks::{callbacks, popped, pushed, range};
use crate::code::{address, seen};
use crate::generated::prelude::P;
use crate::generated::wrappers::*;

/// Bit of `ompt_task_flag_t`.
const INITIAL: c_uint = 1;
/// Values of `ompt_task_status_t` with which a thread does not come back to a task.
const COMPLETE: c_uint = 1;
const CANCEL: c_uint = 3;
const DETACH: c_uint = 4;

callbacks! {
    5 task_create(task: P, _frame: P, new: P, flags: c_int, has_dependences: c_int, code: *const c_void) {
        seen(code);
        ompt_task_create::at(new, task, flags.cast_unsigned(), has_dependences, address(code));
    }

    6 task_schedule(prior: P, status: c_uint, next: P) {
        scheduled(prior, status, next);
    }

    7 implicit_task(endpoint: c_uint, parallel: P, task: P, threads: c_uint, index: c_uint, flags: c_int) {
        let flags = flags.cast_unsigned();
        if flags & INITIAL != 0 {
            range!(
                endpoint, ompt_initial_task_begin, ompt_initial_task_end, c"ompt_initial_task",
                (parallel, task, threads, index, flags)
            );
        } else {
            range!(
                endpoint, ompt_implicit_task_begin, ompt_implicit_task_end, c"ompt_implicit_task",
                (parallel, task, threads, index, flags)
            );
        }
    }

    18 dependences(task: P, deps: *const c_void, count: c_int) {
        // A negative number would be a very large one.
        ompt_dependences::at(task, deps.cast(), u32::try_from(count).unwrap_or(0));
    }

    19 task_dependence(source: P, sink: P) {
        ompt_task_dependence::at(source, sink);
    }
}

/// A thread goes from one task to another. Which of them begin and end on it, and so are ranges, only what it did before
/// shows.
#[inline(always)]
unsafe fn scheduled(prior: P, status: c_uint, next: P) {
    let is_over = matches!(status, COMPLETE | CANCEL | DETACH);
    let switched = if next.is_null() {
        None // No switch: a task's state changes.
    } else {
        halves_of::switch(flags(ompt_task_begin::INDEX), prior as u64, next as u64, is_over)
    };
    // SAFETY: see the head of callbacks.rs.
    unsafe {
        match switched {
            Some(switched) if switched.leaves || switched.enters => {
                if switched.leaves {
                    popped(ompt_task_begin::INDEX);
                    ompt_task_end::at(prior, status, next);
                }
                if switched.enters {
                    ompt_task_begin::at(next, prior, status);
                    pushed(ompt_task_begin::INDEX, c"ompt_task");
                }
            }
            _ => ompt_task_schedule::at(prior, status, next),
        }
    }
}
