//! Memory that is never given back, past the program's allocator.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::ErrnoGuard;

/// Returns fresh zeroed memory that takes no room until it is used; NULL if there is none.
#[cold]
pub fn pages(length: usize) -> *mut u8 {
    let _errno = ErrnoGuard::new();
    // SAFETY: a fresh range at an address of the kernel's choice.
    let fresh = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if fresh == libc::MAP_FAILED { std::ptr::null_mut() } else { fresh.cast() }
}

/// The same, of which a forked child finds zeros: it can touch nothing of its parent's.
#[cold]
pub(super) fn own_pages(length: usize) -> *mut u8 {
    let _errno = ErrnoGuard::new();
    let fresh = pages(length);
    // SAFETY: the range mapped above, which nothing else refers to yet.
    if !fresh.is_null() && unsafe { libc::madvise(fresh.cast(), length, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as for `madvise`.
        unsafe { libc::munmap(fresh.cast(), length) };
        return std::ptr::null_mut();
    }
    fresh
}

/// Unmaps pages that no other thread has seen.
///
/// # Safety
/// `at` came from [`pages`] or [`own_pages`] with this length, and nobody else knows it.
pub(super) unsafe fn unmap(at: *mut u8, length: usize) {
    // SAFETY: a whole mapping that nobody uses.
    unsafe { libc::munmap(at.cast(), length) };
}

const ARENA_BYTES: usize = 4 << 20;
static ARENA: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);

/// Returns zeroed bytes at a multiple of 8, which stay for ever: texts and what is known of
/// objects. `None` when all are used: then something is merely not known.
pub fn arena(bytes: usize) -> Option<*mut u8> {
    let mut base = ARENA.load(Ordering::Acquire);
    if base.is_null() {
        let fresh = pages(ARENA_BYTES);
        if fresh.is_null() {
            return None;
        }
        base = match ARENA.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => fresh,
            Err(there) => {
                // SAFETY: another thread was quicker; none has seen ours.
                unsafe { unmap(fresh, ARENA_BYTES) };
                there
            }
        };
    }
    let bytes = bytes.checked_next_multiple_of(8)?;
    let at = USED.fetch_add(bytes, Ordering::Relaxed);
    if at.checked_add(bytes)? > ARENA_BYTES {
        USED.fetch_sub(bytes, Ordering::Relaxed);
        return None;
    }
    // SAFETY: inside the arena, and this caller's alone.
    Some(unsafe { base.add(at) })
}
