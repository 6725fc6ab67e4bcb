//! Ends of the program that run no `atexit`: `_exit`, as forked workers of Python end, and
//! becoming another program. CUPTI is asked for what it has before.
//!
//! The hooks are jumps, as those on `dlsym`: arguments stay where they are, however many
//! there are, and the real function sees the program's own call. They may be called where
//! hardly anything is allowed, in a signal handler or in a child that shares its parent's
//! memory: they ask our own thread, wait for it for a while, and know the real functions
//! since the library was loaded.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use hetrace_interpose::ring::abi::option;
use hetrace_interpose::{ErrnoGuard, each_object, session};

use super::{active, flusher, ours};

macro_rules! stand_before {
    ($($index:literal $name:ident $text:literal)*) => {
        const NAMES: &[&CStr] = &[$($text),*];

        $(
            /// As the C library's function of that name.
            #[cfg(target_arch = "x86_64")]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            #[allow(non_snake_case, dead_code, reason = "the C library's own name; nobody here calls it")]
            pub unsafe extern "C" fn $name() {
                std::arch::naked_asm!(
                    ".cfi_startproc",
                    "push rdi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rsi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rcx",
                    ".cfi_adjust_cfa_offset 8",
                    "push r8",
                    ".cfi_adjust_cfa_offset 8",
                    "push r9",
                    ".cfi_adjust_cfa_offset 8",
                    "push rax", // How many of the variable arguments are in vector registers.
                    ".cfi_adjust_cfa_offset 8",
                    "mov edi, {index}",
                    "call {ending}",
                    "mov r11, rax",
                    "pop rax",
                    ".cfi_adjust_cfa_offset -8",
                    "pop r9",
                    ".cfi_adjust_cfa_offset -8",
                    "pop r8",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rcx",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rdx",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rsi",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rdi",
                    ".cfi_adjust_cfa_offset -8",
                    "jmp r11",
                    ".cfi_endproc",
                    index = const $index,
                    ending = sym ending,
                );
            }
        )*
    };
}

stand_before! {
    0 _exit c"_exit"
    1 _Exit c"_Exit"
    2 quick_exit c"quick_exit"
    3 execve c"execve"
    4 execv c"execv"
    5 execvp c"execvp"
    6 execvpe c"execvpe"
    7 fexecve c"fexecve"
    8 execl c"execl"
    9 execle c"execle"
    10 execlp c"execlp"
}

/// The first so many do not return.
const EXITS: usize = 3;

static REAL: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// While it is loaded nobody holds the dynamic loader's locks, as a thread may that a
/// forked child does not have.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = find_real;

/// The first definitions behind this library.
extern "C" fn find_real() {
    let mut behind = false;
    each_object(|object| {
        if object.contains(find_real as *const c_void) {
            behind = true;
            return true;
        }
        if !behind {
            return true;
        }
        let mut missing = false;
        for (name, real) in NAMES.iter().zip(&REAL).filter(|(_, r)| r.load(Ordering::Relaxed).is_null()) {
            match object.definition(name) {
                Some(found) => real.store(found, Ordering::Relaxed),
                None => missing = true,
            }
        }
        missing
    });
}

/// Where to go on.
extern "C" fn ending(index: usize) -> *mut c_void {
    let _errno = ErrnoGuard::new();
    if active() && flusher::runs() && ours() && session().is_some_and(|s| s.option(option::DEVICE)) {
        flusher::flush_now(index < EXITS);
    }
    let Some(place) = REAL.get(index) else { return missing as *mut c_void };
    if place.load(Ordering::Relaxed).is_null() {
        find_real(); // Called by what was loaded before us.
    }
    match place.load(Ordering::Relaxed) {
        real if !real.is_null() => real,
        _ if index < EXITS => exit_at_once as *mut c_void,
        _ => missing as *mut c_void,
    }
}

/// Stands for an `_exit` that no library defines.
extern "C" fn exit_at_once(status: c_int) {
    // SAFETY: ends the process, as is wanted.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
}

/// Stands for another function that no library defines.
extern "C" fn missing() -> c_int {
    // SAFETY: the C library's own place for this thread's errno.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_functions_are_known_from_the_start() {
        for (name, real) in NAMES.iter().zip(&REAL) {
            // SAFETY: a NUL-terminated name.
            let expected = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            assert_eq!(real.load(Ordering::Relaxed), expected, "{name:?}");
        }
    }
}
