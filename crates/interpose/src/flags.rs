//! One byte per function that says whether its calls are recorded.
//!
//! The bytes are a page of this library, all zero: dormant. Joining a session
//! maps a page of the session's control file over it, so the launcher switches
//! functions in all processes at once, and a wrapper still needs one load.

use std::sync::atomic::{AtomicU8, Ordering};

use hetrace_ring::abi::{MAX_FUNCTIONS, PAGE};

/// A page of flags.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Flags([AtomicU8; MAX_FUNCTIONS]);

/// The flags of this API. Not `const`-folded: the page is replaced at run time.
pub static FLAGS: Flags = Flags([const { AtomicU8::new(0) }; MAX_FUNCTIONS]);

/// The flags of one function; see [`hetrace_ring::abi::flag`].
#[inline(always)]
pub fn flags(function: usize) -> u8 {
    match FLAGS.0.get(function) {
        // A stale value for a moment is harmless.
        Some(flag) => flag.load(Ordering::Relaxed),
        None => 0,
    }
}

/// Maps the session's flags over this library's. Returns whether it worked.
pub(crate) fn join(control: libc::c_int, offset: usize) -> bool {
    // SAFETY: replaces exactly the page of `FLAGS`, which is aligned to a page
    // and consists of atomics only, by another page of bytes.
    let mapped = unsafe {
        libc::mmap(
            (&raw const FLAGS).cast_mut().cast(),
            PAGE,
            libc::PROT_READ,
            libc::MAP_SHARED | libc::MAP_FIXED,
            control,
            offset as libc::off_t,
        )
    };
    mapped != libc::MAP_FAILED
}
