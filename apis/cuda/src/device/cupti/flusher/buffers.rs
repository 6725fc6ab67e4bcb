//! The buffers that CUPTI fills: a pool of pages of our own, for nothing here may
//! come from the program's heap.
//!
//! CUPTI gives a buffer back when it is full, or when it is flushed and every
//! activity in it has ended. A program that always has something in flight so
//! gets its buffers back full only. Their size follows the program: as long as one
//! fills quickly the next is larger, and small again when it takes long, so that
//! records come back within about the time that the session asks for.
//!
//! What comes back is only marked in CUPTI's callback. Our own thread reads it:
//! what it looks up may need the driver, which must not be asked where CUPTI, or
//! the driver itself, may hold a lock.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use hetrace_interpose::commands::Claim;
use hetrace_interpose::commands::slot::Slot;
use hetrace_interpose::ring::clock::nanoseconds;
use hetrace_interpose::{ErrnoGuard, Spent, pid, spend};

use super::super::deliver;

/// Bytes of a buffer: as mapped, and the smallest size that CUPTI is given.
const MOST: usize = 1 << 20;
const LEAST: usize = 64 << 10;
/// Buffers that there can be; each thread that launches may hold one.
const ALL: usize = 4096;
/// Those whose memory is kept while they are free.
const KEPT: usize = 256;

#[derive(Debug)]
struct Buffer {
    at: AtomicPtr<u8>,
    /// Busy: CUPTI's, or being read. Filled: CUPTI gave it back, and it was not read yet.
    slot: Slot,
    /// Of a filled one: its size as CUPTI was given, and how much is valid.
    size: AtomicUsize,
    valid: AtomicUsize,
}

static POOL: [Buffer; ALL] = [const {
    Buffer {
        at: AtomicPtr::new(std::ptr::null_mut()),
        slot: Slot::new(),
        size: AtomicUsize::new(0),
        valid: AtomicUsize::new(0),
    }
}; ALL];
/// Buffers that were ever used: the first so many.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Someone reads what is filled.
static READING: Claim = Claim::new();
/// Buffers that CUPTI has.
static OUTSTANDING: AtomicUsize = AtomicUsize::new(0);
/// Bytes that were given back and not read yet, and how many there may be: when they are
/// made faster than the launcher takes them, CUPTI counts what it drops.
static UNREAD: AtomicUsize = AtomicUsize::new(0);
const MOST_UNREAD: usize = 256 << 20;
/// Buffers that were read.
static READ: AtomicUsize = AtomicUsize::new(0);
/// Size of the next one.
static SIZE: AtomicUsize = AtomicUsize::new(LEAST);
/// When the last one was asked for.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How many buffers CUPTI has.
pub fn outstanding() -> usize {
    OUTSTANDING.load(Ordering::Relaxed)
}

/// How many buffers were read.
pub fn read_so_far() -> usize {
    READ.load(Ordering::Relaxed)
}

fn map() -> *mut u8 {
    // SAFETY: a fresh range at an address of the kernel's choice; pages cost
    // nothing before they are used.
    let pages = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            MOST,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if pages == libc::MAP_FAILED { std::ptr::null_mut() } else { pages.cast() }
}

/// A buffer full of zeros, or NULL if there is no memory or there are too many.
fn take() -> *mut u8 {
    // Without our thread they are read when the program synchronizes, if it does.
    let most = if super::runs() { ALL } else { KEPT };
    let me = pid();
    for (number, buffer) in POOL.iter().enumerate().take(most) {
        if !buffer.slot.claim(me) {
            continue;
        }
        USED.fetch_max(number + 1, Ordering::Relaxed);
        let at = buffer.at.load(Ordering::Relaxed);
        if !at.is_null() {
            return at;
        }
        let fresh = map();
        buffer.at.store(fresh, Ordering::Relaxed);
        if fresh.is_null() {
            buffer.slot.free();
        }
        return fresh;
    }
    std::ptr::null_mut()
}

fn used() -> impl Iterator<Item = &'static Buffer> {
    POOL.iter().take(USED.load(Ordering::Relaxed))
}

fn buffer_of(at: *mut u8) -> Option<(usize, &'static Buffer)> {
    used().enumerate().find(|(_, buffer)| buffer.at.load(Ordering::Relaxed) == at)
}

/// # Safety
/// `at` came from [`take`], was used up to `size`, and nothing refers to it any more.
unsafe fn give_back(at: *mut u8, size: usize) {
    let Some((number, buffer)) = buffer_of(at) else { return };
    // SAFETY: a whole mapping of ours.
    unsafe {
        if number < KEPT {
            at.write_bytes(0, size.min(MOST));
        } else {
            // Forgotten first: the next mapping may be of this very address.
            buffer.at.store(std::ptr::null_mut(), Ordering::Relaxed);
            libc::munmap(at.cast(), MOST);
        }
    }
    buffer.slot.free();
}

/// Reads what CUPTI has given back, unless another thread is at it. Returns
/// whether it was done.
pub fn read_filled() -> bool {
    let read = || {
        let me = pid();
        for buffer in used().filter(|buffer| buffer.slot.take_up(me)) {
            let at = buffer.at.load(Ordering::Relaxed);
            let (size, valid) = (buffer.size.load(Ordering::Relaxed), buffer.valid.load(Ordering::Relaxed));
            // SAFETY: CUPTI gave it back, filled up to `valid`, and the slot is ours.
            unsafe {
                deliver::buffer(at, valid);
                give_back(at, size);
            }
            UNREAD.fetch_sub(size, Ordering::Relaxed);
            READ.fetch_add(1, Ordering::Relaxed);
        }
    };
    READING.holding(read).is_some()
}

/// The size of the next buffer, `since` nanoseconds after the last was asked for.
fn next_size(size: usize, since: u64, period: u64) -> usize {
    let wanted = if since < period / 8 {
        size * 2
    } else if since > period {
        size / 2
    } else {
        size
    };
    wanted.clamp(LEAST, MOST)
}

/// CUPTI wants a buffer, on any thread.
///
/// # Safety
/// CUPTI calls it, with places for the answers.
pub unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    let _errno = ErrnoGuard::new();
    let now = nanoseconds(libc::CLOCK_MONOTONIC);
    let since = now.saturating_sub(LAST.swap(now, Ordering::Relaxed));
    let next = next_size(SIZE.load(Ordering::Relaxed), since, super::period_ns());
    SIZE.store(next, Ordering::Relaxed);
    let behind = UNREAD.load(Ordering::Relaxed) > MOST_UNREAD;
    // In the middle of a launch.
    let at = if behind { std::ptr::null_mut() } else { spend(Spent::Collector, take) };
    if !at.is_null() {
        OUTSTANDING.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: CUPTI passes three places to write to. Without a buffer it drops records, and counts
    // them.
    unsafe {
        *buffer = at;
        *size = if at.is_null() { 0 } else { next };
        *records = 0;
    }
}

/// CUPTI gives a buffer back, on any thread.
///
/// # Safety
/// CUPTI calls it, with a buffer that it got from [`requested`].
pub unsafe extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, size: usize, valid: usize) {
    let _errno = ErrnoGuard::new();
    if buffer.is_null() {
        return;
    }
    if let Some((_, buffer)) = buffer_of(buffer) {
        buffer.size.store(size, Ordering::Relaxed);
        UNREAD.fetch_add(size, Ordering::Relaxed);
        buffer.valid.store(valid.min(size).min(MOST), Ordering::Relaxed);
        buffer.slot.fill(pid());
        if super::runs() {
            super::wake();
        }
    }
    OUTSTANDING.fetch_sub(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_program() {
        let period = 100_000_000;
        assert_eq!(next_size(LEAST, 1_000_000, period), 2 * LEAST);
        assert_eq!(next_size(MOST, 1_000_000, period), MOST);
        assert_eq!(next_size(4 * LEAST, 50_000_000, period), 4 * LEAST);
        assert_eq!(next_size(4 * LEAST, 5_000_000_000, period), 2 * LEAST);
        assert_eq!(next_size(LEAST, u64::MAX, period), LEAST);
    }

    #[test]
    fn buffers_come_back_clean_and_are_used_again() {
        let all: Vec<*mut u8> = (0..KEPT).map(|_| take()).collect();
        assert!(take().is_null(), "no more without a thread that reads");
        assert!(all.iter().all(|at| !at.is_null() && (*at as usize).is_multiple_of(4096)));
        for at in &all {
            // SAFETY: a buffer that is ours alone.
            unsafe {
                at.write_bytes(0xee, LEAST);
                give_back(*at, LEAST);
            }
        }
        let again = take();
        assert!(all.contains(&again));
        // SAFETY: `take` gave a buffer of at least LEAST bytes, and only this test has it.
        assert!(unsafe { std::slice::from_raw_parts(again, LEAST) }.iter().all(|b| *b == 0));
        // SAFETY: the buffer came from `take`, was used up to LEAST, and is not used after this.
        unsafe { give_back(again, LEAST) };
    }
}
