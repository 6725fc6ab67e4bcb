//! What is known of each queue.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use hetrace_interpose::table::Table;

use crate::generated::prelude::P;

/// The program itself asked for profiling.
pub const ASKED: u64 = 1 << 0;
/// The queue has profiling, whoever asked.
pub const PROFILED: u64 = 1 << 1;
/// Commands of the queue may overtake each other.
pub const OUT_OF_ORDER: u64 = 1 << 2;

/// A queue as we made it and as the program thinks it is.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    pub device: P,
    pub flags: u64,
}

/// Handle → device and flags: an address has no use for its upper byte.
static QUEUES: Table<4096> = Table::new();
/// Handle → the property list that the program gave.
static LISTS: Table<4096> = Table::new();

pub fn remember(queue: P, device: P, flags: u64) {
    QUEUES.set(queue as u64, (device as u64 & ((1 << 56) - 1)) | flags << 56);
    LISTS.remove(queue as u64);
}

#[inline]
pub fn get(queue: P) -> Option<Queue> {
    let word = QUEUES.get(queue as u64)?;
    Some(Queue { device: (word & ((1 << 56) - 1)) as P, flags: word >> 56 })
}

/// Longest property list that is kept, with its 0.
pub const LIST: usize = 32;

/// Keeps the program's property list, to be shown to it again.
pub fn remember_list(queue: P, list: &[u64]) {
    let Some(place) = arena(list.len() + 1) else { return };
    // SAFETY: `arena` gave room for this many words.
    unsafe {
        *place = list.len() as u64;
        place.add(1).copy_from_nonoverlapping(list.as_ptr(), list.len());
    }
    LISTS.set(queue as u64, place as u64);
}

/// The list kept for a queue.
pub fn list(queue: P) -> Option<&'static [u64]> {
    let place = LISTS.get(queue as u64)? as *const u64;
    // SAFETY: made by `remember_list`, and never changed or freed.
    unsafe { Some(std::slice::from_raw_parts(place.add(1), *place as usize)) }
}

const ARENA_WORDS: usize = 1 << 17;
static ARENA: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);

/// Words that are never given back, from a megabyte that costs nothing until
/// it is used. `None` when it is used up: then something is merely not known.
pub fn arena(words: usize) -> Option<*mut u64> {
    let mut base = ARENA.load(Ordering::Acquire);
    if base.is_null() {
        // SAFETY: a fresh range at an address of the kernel's choice.
        let fresh = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                ARENA_WORDS * 8,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if fresh == libc::MAP_FAILED {
            return None;
        }
        let fresh = fresh.cast::<u64>();
        base = match ARENA.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => fresh,
            Err(there) => {
                // SAFETY: another thread was quicker; ours is not used.
                unsafe { libc::munmap(fresh.cast(), ARENA_WORDS * 8) };
                there
            }
        };
    }
    let at = USED.fetch_add(words, Ordering::Relaxed);
    if at.checked_add(words)? > ARENA_WORDS {
        USED.fetch_sub(words, Ordering::Relaxed);
        return None;
    }
    // SAFETY: inside the arena, and this caller's alone.
    Some(unsafe { base.add(at) })
}
