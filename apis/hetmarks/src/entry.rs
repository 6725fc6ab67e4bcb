//! What the header asks for: the functions that stand behind those in the program.

use hetrace_interpose::{ErrnoGuard, session, task};

use crate::generated::wrappers;

/// The functions, as `include/hetrace.h` and the Rust crate know them. New ones come at the end; the size says which
/// are there.
#[repr(C)]
#[derive(Debug)]
pub struct Functions {
    size: usize,
    push: unsafe extern "C" fn(*const i8),
    pop: unsafe extern "C" fn(),
    start: unsafe extern "C" fn(*const i8) -> u64,
    end: unsafe extern "C" fn(u64),
    mark: unsafe extern "C" fn(*const i8, u64),
    name_thread: unsafe extern "C" fn(*const i8),
    capture_start: unsafe extern "C" fn(),
    capture_stop: unsafe extern "C" fn(),
    snapshot: unsafe extern "C" fn(),
}

static FUNCTIONS: Functions = Functions {
    size: size_of::<Functions>(),
    push,
    pop,
    start: wrappers::hetrace_start,
    end: wrappers::hetrace_end,
    mark: wrappers::hetrace_mark,
    name_thread,
    capture_start: wrappers::hetrace_capture_start,
    capture_stop: wrappers::hetrace_capture_stop,
    snapshot: wrappers::hetrace_snapshot,
};

unsafe extern "C" fn push(message: *const i8) {
    // SAFETY: what the program passes.
    unsafe { wrappers::hetrace_push(message) };
}

unsafe extern "C" fn pop() {
    // SAFETY: no preconditions.
    unsafe { wrappers::hetrace_pop() };
}

unsafe extern "C" fn name_thread(name: *const i8) {
    // SAFETY: the text is the program's; the other call has no preconditions.
    unsafe { wrappers::hetrace_name_thread(task(), name) };
}

/// Returns the functions; NULL if this process is not traced.
#[unsafe(no_mangle)]
pub extern "C" fn hetrace_marks() -> *const Functions {
    let _errno = ErrnoGuard::new();
    if session().is_some() { &raw const FUNCTIONS } else { std::ptr::null() }
}
