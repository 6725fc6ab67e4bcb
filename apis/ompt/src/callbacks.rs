//! What a runtime reports of threads, parallel regions, work and synchronization.
//!
//! One safety argument stands for all callbacks here, in [`tasks`](crate::tasks) and in [`target`](crate::target): the
//! arguments are those that the runtime passes, whose types and meaning the specification gives; of words of a tool
//! (`ompt_data_t`) only the addresses are taken.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use hetrace_interpose::ranges::{levels, named};
use hetrace_interpose::window;

use crate::code::{address, seen, seen_first};
use crate::generated::prelude::P;
use crate::generated::wrappers::*;

/// Bits of `ompt_scope_endpoint_t`: both where a runtime reports only that something happened.
pub const BEGIN: c_uint = 1;
pub const END: c_uint = 2;

/// Makes callbacks: each records, and passes the event on to the next tool.
macro_rules! callbacks {
    ($($number:literal $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        pub unsafe extern "C" fn $name($($arg: $ty),*) {
            // Kept apart, so that a program of which nothing is recorded needs no stack for it.
            #[inline(never)]
            unsafe extern "C" fn recorded($($arg: $ty),*) {
                // SAFETY: see the head of callbacks.rs.
                unsafe { $body }
                // SAFETY: see the head of callbacks.rs.
                unsafe { passed_on($($arg),*) };
            }
            #[inline(always)]
            unsafe extern "C" fn passed_on($($arg: $ty),*) {
                // SAFETY: this event's type.
                let next = unsafe { crate::passed::callback::<unsafe extern "C" fn($($ty),*)>($number) };
                if let Some(next) = next {
                    // SAFETY: see the head of callbacks.rs.
                    unsafe { next($($arg),*) };
                }
            }
            // SAFETY: see the head of callbacks.rs.
            unsafe {
                match hetrace_interpose::halves::is_dormant() {
                    true => passed_on($($arg),*),
                    false => recorded($($arg),*),
                }
            }
        }
    )* };
}
pub(crate) use callbacks;

/// Records a range: what begins it, what ends it, and what it is called, by which a capture window may choose it.
macro_rules! range {
    ($endpoint:expr, $begin:ident, $end:ident, $name:literal, ($($arg:expr),*)) => {
        if $endpoint & $crate::callbacks::BEGIN != 0 {
            $begin::at($($arg),*);
            $crate::callbacks::pushed($begin::INDEX, $name);
        }
        if $endpoint & $crate::callbacks::END != 0 {
            $crate::callbacks::popped($begin::INDEX);
            $end::at($($arg),*);
        }
    };
}
pub(crate) use range;

/// Records a call that has two halves.
macro_rules! halves {
    ($endpoint:expr, $call:ident, ($($arg:expr),*)) => {
        match $endpoint {
            $crate::callbacks::BEGIN => $call::begin($($arg),*),
            $crate::callbacks::END => $call::end(),
            _ => $call::at($($arg),*),
        }
    };
}
pub(crate) use halves;

/// A range has begun, by the function of this number: a capture window may begin with it. Levels are those of ranges of one
/// kind, since runtimes do not report the end of each.
#[inline(always)]
pub fn pushed(kind: usize, name: &'static CStr) {
    if window::has_ranges() {
        let level = levels::push(kind as u64);
        // SAFETY: a text.
        unsafe { named::pushed(kind as u64, level, name.as_ptr().cast(), std::ptr::null_mut()) };
    }
}

/// A range ends.
#[inline(always)]
pub fn popped(kind: usize) {
    if window::has_ranges() {
        named::popped(kind as u64, levels::pop(kind as u64));
    }
}

callbacks! {
    1 thread_begin(thread_type: c_uint, _data: P) {
        ompt_thread_begin::at(thread_type);
    }

    2 thread_end(_data: P) {
        ompt_thread_end::at();
    }

    3 parallel_begin(task: P, _frame: P, parallel: P, requested: c_uint, flags: c_int, code: *const c_void) {
        seen_first(code);
        ompt_parallel_begin::at(parallel, task, requested, flags.cast_unsigned(), address(code));
        pushed(ompt_parallel_begin::INDEX, c"ompt_parallel");
    }

    4 parallel_end(parallel: P, task: P, flags: c_int, code: *const c_void) {
        popped(ompt_parallel_begin::INDEX);
        ompt_parallel_end::at(parallel, task, flags.cast_unsigned(), address(code));
    }

    16 sync_region_wait(kind: c_uint, endpoint: c_uint, parallel: P, task: P, code: *const c_void) {
        if endpoint != END {
            seen(code);
        }
        let at = address(code);
        // Values of ompt_sync_region_t.
        match kind {
            1 => halves!(endpoint, ompt_wait_barrier, (parallel, task, at)),
            2 => halves!(endpoint, ompt_wait_barrier_implicit, (parallel, task, at)),
            3 => halves!(endpoint, ompt_wait_barrier_explicit, (parallel, task, at)),
            4 => halves!(endpoint, ompt_wait_barrier_implementation, (parallel, task, at)),
            5 => halves!(endpoint, ompt_wait_taskwait, (parallel, task, at)),
            6 => halves!(endpoint, ompt_wait_taskgroup, (parallel, task, at)),
            7 => halves!(endpoint, ompt_wait_reduction, (parallel, task, at)),
            8 => halves!(endpoint, ompt_wait_barrier_implicit_workshare, (parallel, task, at)),
            9 => halves!(endpoint, ompt_wait_barrier_implicit_parallel, (parallel, task, at)),
            10 => halves!(endpoint, ompt_wait_barrier_teams, (parallel, task, at)),
            _ => halves!(endpoint, ompt_wait, (kind, parallel, task, at)),
        }
    }

    17 mutex_released(kind: c_uint, wait_id: u64, code: *const c_void) {
        ompt_mutex_released::at(kind, wait_id, address(code));
    }

    20 work(kind: c_uint, endpoint: c_uint, parallel: P, task: P, count: u64, code: *const c_void) {
        if endpoint != END {
            seen(code);
        }
        work_of(kind, endpoint, (parallel, task, count, address(code)));
    }

    21 masked(endpoint: c_uint, parallel: P, task: P, code: *const c_void) {
        range!(endpoint, ompt_masked_begin, ompt_masked_end, c"ompt_masked", (parallel, task, address(code)));
    }

    23 sync_region(kind: c_uint, endpoint: c_uint, parallel: P, task: P, code: *const c_void) {
        range!(
            endpoint, ompt_sync_region_begin, ompt_sync_region_end, c"ompt_sync_region",
            (kind, parallel, task, address(code))
        );
    }

    24 lock_init(kind: c_uint, hint: c_uint, implementation: c_uint, wait_id: u64, code: *const c_void) {
        ompt_lock_init::at(kind, hint, implementation, wait_id, address(code));
    }

    25 lock_destroy(kind: c_uint, wait_id: u64, code: *const c_void) {
        ompt_lock_destroy::at(kind, wait_id, address(code));
    }

    26 mutex_acquire(kind: c_uint, hint: c_uint, implementation: c_uint, wait_id: u64, code: *const c_void) {
        seen(code);
        let at = address(code);
        // Values of ompt_mutex_t. A test may fail, and then nothing more is reported of it.
        match kind {
            1 => ompt_acquire_lock::begin(hint, implementation, wait_id, at),
            2 | 4 => ompt_test_lock::at(kind, hint, implementation, wait_id, at),
            3 => ompt_acquire_nest_lock::begin(hint, implementation, wait_id, at),
            5 => ompt_acquire_critical::begin(hint, implementation, wait_id, at),
            6 => ompt_acquire_atomic::begin(hint, implementation, wait_id, at),
            7 => ompt_acquire_ordered::begin(hint, implementation, wait_id, at),
            _ => ompt_acquire::begin(kind, hint, implementation, wait_id, at),
        }
    }

    27 mutex_acquired(kind: c_uint, wait_id: u64, code: *const c_void) {
        match kind {
            1 => ompt_acquire_lock::end(),
            2 | 4 => ompt_test_lock_acquired::at(kind, wait_id, address(code)),
            3 => ompt_acquire_nest_lock::end(),
            5 => ompt_acquire_critical::end(),
            6 => ompt_acquire_atomic::end(),
            7 => ompt_acquire_ordered::end(),
            _ => ompt_acquire::end(),
        }
    }

    28 nest_lock(endpoint: c_uint, wait_id: u64, code: *const c_void) {
        ompt_nest_lock::at(endpoint, wait_id, address(code));
    }

    29 flush(_thread: P, code: *const c_void) {
        ompt_flush::at(address(code));
    }

    30 cancel(task: P, flags: c_int, code: *const c_void) {
        ompt_cancel::at(task, flags.cast_unsigned(), address(code));
    }

    31 reduction(kind: c_uint, endpoint: c_uint, parallel: P, task: P, code: *const c_void) {
        range!(
            endpoint, ompt_reduction_begin, ompt_reduction_end, c"ompt_reduction",
            (kind, parallel, task, address(code))
        );
    }

    32 dispatch(parallel: P, task: P, kind: c_uint, instance: u64) {
        // From 3 on values of ompt_dispatch_t are chunks: the word is the address of two numbers.
        let chunk = (3..=5).contains(&kind).then_some(instance as *const [u64; 2]);
        let [start, iterations] = chunk.and_then(|chunk| chunk.as_ref()).copied().unwrap_or_default();
        ompt_dispatch::at(parallel, task, kind, instance, start, iterations);
    }

    37 error(severity: c_uint, message: *const c_char, length: usize, code: *const c_void) {
        ompt_error::at(severity, message, length as u64, address(code));
    }
}

/// A part of [`work`]: the kinds, values of ompt_work_t.
#[inline(always)]
unsafe fn work_of(kind: c_uint, endpoint: c_uint, (parallel, task, count, at): (P, P, u64, u64)) {
    macro_rules! kinds {
        ($($value:literal $begin:ident $end:ident $name:literal;)*) => {
            match kind {
                $($value => {
                    range!(endpoint, $begin, $end, $name, (parallel, task, count, at));
                })*
                _ => {
                    range!(endpoint, ompt_work_begin, ompt_work_end, c"ompt_work", (kind, parallel, task, count, at));
                }
            }
        };
    }
    // SAFETY: see the head of this file.
    unsafe {
        kinds! {
            1 ompt_loop_begin ompt_loop_end c"ompt_loop";
            2 ompt_sections_begin ompt_sections_end c"ompt_sections";
            3 ompt_single_executor_begin ompt_single_executor_end c"ompt_single_executor";
            4 ompt_single_other_begin ompt_single_other_end c"ompt_single_other";
            5 ompt_workshare_begin ompt_workshare_end c"ompt_workshare";
            6 ompt_distribute_begin ompt_distribute_end c"ompt_distribute";
            7 ompt_taskloop_begin ompt_taskloop_end c"ompt_taskloop";
            8 ompt_scope_region_begin ompt_scope_region_end c"ompt_scope_region";
            10 ompt_loop_static_begin ompt_loop_static_end c"ompt_loop_static";
            11 ompt_loop_dynamic_begin ompt_loop_dynamic_end c"ompt_loop_dynamic";
            12 ompt_loop_guided_begin ompt_loop_guided_end c"ompt_loop_guided";
            13 ompt_loop_other_begin ompt_loop_other_end c"ompt_loop_other";
        }
    }
}

/// The program talks to its tool (`omp_control_tool`): with `--on-calls` that is a capture window. What it answers is the
/// next tool's answer; ours alone is that all is well.
pub unsafe extern "C" fn control_tool(
    command: u64,
    modifier: u64,
    argument: P,
    code: *const c_void,
) -> c_int {
    /// `omp_control_tool_start`, `omp_control_tool_pause` and `omp_control_tool_end`.
    const START: u64 = 1;
    const PAUSE: u64 = 2;
    const FINISH: u64 = 4;
    // SAFETY: see the head of this file.
    unsafe { ompt_control_tool::at(command, modifier, argument as u64, address(code)) };
    match command {
        START => window::asked(true),
        PAUSE | FINISH => window::asked(false),
        _ => {}
    }
    // SAFETY: this event's type.
    let next =
        unsafe { crate::passed::callback::<unsafe extern "C" fn(u64, u64, P, *const c_void) -> c_int>(11) };
    // SAFETY: see the head of this file.
    next.map_or(0, |next| unsafe { next(command, modifier, argument, code) })
}
