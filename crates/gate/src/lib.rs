//! The gate: what is preloaded into every process of a traced program, and alone into those that can't come to an
//! accelerator's API ([decision 0086](../../../docs/decisions/0086-closed-programs.md)).
//!
//! ```text
//!  the program's environment, always:   LD_PRELOAD=api.so:…:gate.so      so whoever starts a program in a way that
//!                                                                        is not seen here gives it all libraries
//!  exec of a closed program, seen here: LD_PRELOAD=gate.so ──exec──► the gate starts and puts the whole list back
//! ```
//! So what is missed costs time and nothing else. Both lists stand in variables of the launcher's, whose ends are
//! entries of the environment themselves: nothing has to be copied, and nothing is allocated between `vfork` and `exec`.
//!
//! Nothing is handed over between threads here: what is looked up is code, which was there before, and two threads that look
//! at once find the same.
// Lints look at it as a test, too, which has the standard library.
#![cfg_attr(not(test), no_std)]
#![allow(clippy::missing_safety_doc, reason = "the C library's own functions")]

mod environment;
mod exec;
mod path;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library's, or of another that stands in its place.
pub(crate) struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Real { name, found: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Looks it up behind us.
    fn find(&self) {
        // SAFETY: a NUL-terminated name.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
    }

    /// Returns where it is. What is called before we have started is looked up at once.
    pub(crate) fn get(&self) -> *mut c_void {
        if self.found.load(Ordering::Relaxed).is_null() {
            self.find();
        }
        self.found.load(Ordering::Relaxed)
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = start;

/// Starts: functions are looked up now, since a forked child of a process with threads can't; and the environment gets
/// the whole list back.
extern "C" fn start(_: c_int, _: *mut *mut c_char, first: *mut *mut c_char) {
    exec::ALL.iter().for_each(Real::find);
    // SAFETY: the C library's variable; no other thread runs yet.
    let current = unsafe { environment::environ };
    // SAFETY: environments end with a null pointer, and their texts with a zero.
    unsafe { environment::restore(current) };
    if !core::ptr::eq(current, first) {
        // SAFETY: what the loader handed over ends with a null pointer, too, its texts with a zero; a library that started
        // before us has moved the environment, and `main` gets the first.
        unsafe { environment::restore(first) };
    }
}

#[cfg(not(test))]
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    // Nothing here panics; without a handler nothing compiles.
    // SAFETY: it does not return.
    unsafe { libc::abort() }
}

// `core` is built for programs that unwind, and refers to what would find its way through its frames. It is ours alone:
// exported, it would be in the place of that of the program's libraries in Rust.
#[cfg(not(test))]
core::arch::global_asm!(
    ".text",
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    ".type rust_eh_personality, @function",
    "rust_eh_personality:",
    ".byte 0, 0, 0, 0",
);
