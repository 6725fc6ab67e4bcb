//! Memory that is never given back, past the program's allocator.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

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
pub(crate) fn own_pages(length: usize) -> *mut u8 {
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

/// Maps memory for `length` bytes of values to where `place` leads, unless it leads somewhere; `map` is [`pages`] or
/// [`own_pages`]. Returns whether it leads somewhere now.
pub(crate) fn map_once<T>(place: &AtomicPtr<T>, length: usize, map: fn(usize) -> *mut u8) -> bool {
    if !place.load(Ordering::Acquire).is_null() {
        return true;
    }
    let fresh = map(length);
    if fresh.is_null() {
        return false;
    }
    let (null, order) = (std::ptr::null_mut(), Ordering::AcqRel);
    if place.compare_exchange(null, fresh.cast(), order, Ordering::Acquire).is_err() {
        // SAFETY: the whole mapping, made above: another thread was quicker, and none has seen ours.
        unsafe { libc::munmap(fresh.cast(), length) };
    }
    true
}

/// Types of which zeros are a value.
///
/// # Safety
/// All bytes of a value may be 0, and values need no destructor.
pub unsafe trait Zeroed {}

// SAFETY: atomics are numbers.
unsafe impl Zeroed for AtomicU8 {}
// SAFETY: atomics are numbers.
unsafe impl Zeroed for AtomicU64 {}

/// So many values, all zeros at first, for which addresses are taken when one is asked for: a static array would take them
/// in each process, also where nobody needs it.
#[derive(Debug)]
pub struct Mapped<T, const N: usize>(AtomicPtr<T>);

impl<T: Zeroed, const N: usize> Mapped<T, N> {
    /// None yet.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// All values, if there were any; else none.
    #[inline]
    pub fn all(&self) -> &[T] {
        let base = self.0.load(Ordering::Acquire);
        if base.is_null() {
            return &[];
        }
        // SAFETY: so many values were mapped there for ever, zeroed as `Zeroed` allows; pages begin at a multiple of
        // whatever a value has to.
        unsafe { std::slice::from_raw_parts(base, N) }
    }

    /// All values; none if there is no memory.
    #[inline]
    pub fn or_map(&self) -> &[T] {
        if self.0.load(Ordering::Relaxed).is_null() {
            map_once(&self.0, N * size_of::<T>(), pages);
        }
        self.all()
    }
}

impl<T: Zeroed, const N: usize> Default for Mapped<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

const ARENA_BYTES: usize = 4 << 20;
static ARENA: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);

/// Returns zeroed bytes at a multiple of 8, which stay for ever: texts and what is known of
/// objects. `None` when all are used: then something is merely not known.
pub fn arena(bytes: usize) -> Option<*mut u8> {
    map_once(&ARENA, ARENA_BYTES, pages).then_some(())?;
    let base = ARENA.load(Ordering::Acquire);
    let bytes = bytes.checked_next_multiple_of(8)?;
    let at = USED.fetch_add(bytes, Ordering::Relaxed);
    if at.checked_add(bytes)? > ARENA_BYTES {
        USED.fetch_sub(bytes, Ordering::Relaxed);
        return None;
    }
    // SAFETY: inside the arena, and this caller's alone.
    Some(unsafe { base.add(at) })
}
