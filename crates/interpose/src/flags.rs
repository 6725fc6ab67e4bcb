//! One byte per function that says whether its calls are recorded.
//!
//! The bytes are a page of this library, all zero: dormant. Joining a session
//! maps a page of the session's control file over it, so the launcher switches
//! functions in all processes at once. In front of it lies the page with the session's
//! [`Switch`], whose mask says which bits of all these bytes count now: zero
//! before a session is joined, and then what the launcher, or a program that came to where the
//! window begins or ends, has stored there. A wrapper needs two loads, beside each other.
//! Both pages are read-only here.

use std::sync::atomic::{AtomicU8, Ordering};

use hetrace_ring::abi::{Counts, MAX_FUNCTIONS, PAGE, Switch, Window};

/// The page of the switch, and a page of flags.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Flags {
    /// First byte of the switch: its mask.
    mask: AtomicU8,
    rest: [AtomicU8; PAGE - 1],
    flags: [AtomicU8; MAX_FUNCTIONS],
}

const _: () = assert!(std::mem::offset_of!(Switch, mask) == 0);
const _: () = assert!(std::mem::offset_of!(Window, switch) == 0);
const _: () = assert!(std::mem::offset_of!(Counts, switch) == 0);
const _: () = assert!(size_of::<Flags>() == 2 * PAGE);

/// The flags of this API. Not `const`-folded: the pages are replaced at run time.
pub static FLAGS: Flags = Flags {
    mask: AtomicU8::new(0),
    rest: [const { AtomicU8::new(0) }; PAGE - 1],
    flags: [const { AtomicU8::new(0) }; MAX_FUNCTIONS],
};

/// The flags of one function that count now; see [`hetrace_ring::abi::flag`].
#[inline(always)]
pub fn flags(function: usize) -> u8 {
    // A stale value for a moment is harmless, of either.
    all_flags(function) & FLAGS.mask.load(Ordering::Relaxed)
}

/// The flags of one function, whether or not they count now.
#[inline(always)]
pub(crate) fn all_flags(function: usize) -> u8 {
    FLAGS.flags.get(function).map_or(0, |flag| flag.load(Ordering::Relaxed))
}

/// Whether the session that was joined may want calls of a function, now or in a capture window.
pub fn is_selected(function: usize) -> bool {
    all_flags(function) != 0
}

/// Which bits of all flags count now.
#[inline(always)]
pub(crate) fn mask() -> u8 {
    FLAGS.mask.load(Ordering::Relaxed)
}

/// A page of the session.
#[derive(Clone, Copy)]
pub(crate) enum Page {
    /// Of a file that is open, from this offset on.
    File(libc::c_int, usize),
    /// That is mapped here already, shared.
    Mapped(*const u8),
}

/// Maps the session's flags and its switch over this library's. Returns whether it worked.
pub(crate) fn join(flags: Page, switch: Page) -> bool {
    let first: *const u8 = (&raw const FLAGS).cast();
    // The mask comes last: until then it is zero.
    map(first.wrapping_add(PAGE), flags) && map(first, switch)
}

/// Maps a page over one of `FLAGS`, for reading.
fn map(at: *const u8, page: Page) -> bool {
    let place = at.cast_mut().cast();
    // SAFETY: replaces exactly one page of `FLAGS`, which is aligned to a page, as both of its pages are, and consists
    // of atomics only, by another page of bytes. (Of length 0, the page that is there stays as it is.)
    let mapped = unsafe {
        match page {
            Page::File(file, offset) => libc::mmap(
                place,
                PAGE,
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file,
                offset as libc::off_t,
            ),
            Page::Mapped(there) => libc::mremap(
                there.cast_mut().cast(),
                0,
                PAGE,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                place,
            ),
        }
    };
    // A page that was mapped for writing is so in its other place, too.
    // SAFETY: the page that was mapped just now.
    mapped != libc::MAP_FAILED
        && (matches!(page, Page::File(..)) || unsafe { libc::mprotect(place, PAGE, libc::PROT_READ) } == 0)
}
