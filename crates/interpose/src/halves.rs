//! Calls that an API reports in two halves: a callback for their begin, another for their end.
//!
//! How a begin was recorded is kept until its end comes, on a stack of the thread's own: an end is recorded if its
//! begin was, whatever has been switched on or off between them. An API's runtime begins and ends its calls in the
//! right order; an end that never comes is given up when that of a call around it does, and one without a begin is
//! passed over.
//!
//! The stack is memory of the thread's [`Extra`], so an API with halves has no other use for that.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hetrace_ring::abi::flag;
use hetrace_ring::clock;
use hetrace_ring::writer::Writer;

use crate::attach::lose_call;
use crate::budget::{self, Way};
use crate::call::call;
use crate::cancel::NoCancel;
use crate::contexts::{Contexts, Switched};
use crate::errno::ErrnoGuard;
use crate::extra::Extra;
use crate::flags::mask;
use crate::put::Put;
use crate::record::{put, put_exit};
use crate::thread::{existing, writer};
use crate::tls;

/// Calls that one thread may have open. What is deeper is counted as lost.
const LEVELS: usize = 1023;

/// An open call.
#[repr(C)]
#[derive(Debug)]
struct Level {
    /// The number of its entry's event.
    id: AtomicU32,
    /// [`SKIPPED`], [`RECORDED`], or when it began, of one that is added up.
    how: AtomicU64,
}

/// Nothing was recorded of it.
const SKIPPED: u64 = 0;
/// Its entry was.
const RECORDED: u64 = 1;

/// The open calls of a thread, the outermost first. Zeros are an empty one of nobody.
#[repr(C)]
#[derive(Debug)]
struct Stack {
    /// First, as [`crate::thread_extra`] wants it.
    extra: Extra,
    /// May be more than there is room for.
    depth: AtomicU32,
    /// The one that was made before.
    next: AtomicPtr<Stack>,
    contexts: Contexts,
    levels: [Level; LEVELS],
}

/// All that were ever made, for threads to come; none is ever unmapped.
static STACKS: AtomicPtr<Stack> = AtomicPtr::new(null_mut());

impl Stack {
    /// A call begins, of which nothing is recorded yet. Returns none if there is no room for it.
    #[inline(always)]
    fn push(&self, id: u16) -> Option<&Level> {
        let depth = self.depth.load(Ordering::Relaxed);
        // First of all: a signal handler's own calls come above this one.
        self.depth.store(depth.wrapping_add(1), Ordering::Relaxed);
        let level = self.levels.get(depth as usize)?;
        level.id.store(u32::from(id), Ordering::Relaxed);
        level.how.store(SKIPPED, Ordering::Relaxed);
        Some(level)
    }

    /// Takes off the innermost call of this number, with all that is above it.
    #[inline(always)]
    fn pop(&self, id: u16) -> u64 {
        let depth = self.depth.load(Ordering::Relaxed);
        let Some(below) = depth.checked_sub(1) else { return SKIPPED };
        match self.levels.get(below as usize) {
            Some(top) if top.id.load(Ordering::Relaxed) == u32::from(id) => {
                self.depth.store(below, Ordering::Relaxed);
                top.how.load(Ordering::Relaxed)
            }
            _ => self.pop_below(id, depth),
        }
    }

    #[cold]
    #[inline(never)]
    fn pop_below(&self, id: u16, depth: u32) -> u64 {
        let depth = depth as usize;
        if depth > LEVELS {
            // One of those that there was no room for.
            self.depth.store((depth - 1) as u32, Ordering::Relaxed);
            return SKIPPED;
        }
        let open = self.levels.get(..depth).unwrap_or_default();
        let Some(at) = open.iter().rposition(|level| level.id.load(Ordering::Relaxed) == u32::from(id))
        else {
            return SKIPPED;
        };
        self.depth.store(at as u32, Ordering::Relaxed);
        open.get(at).map_or(SKIPPED, |level| level.how.load(Ordering::Relaxed))
    }
}

/// The thread's stack, if it has one.
#[inline(always)]
fn stack(writer: &Writer) -> Option<&'static Stack> {
    let word = writer.extra.load(Ordering::Relaxed);
    // SAFETY: null, or made by `make` and never unmapped; the API stores nothing else there.
    unsafe { word.cast::<Stack>().as_ref() }
}

/// Gives a thread a stack: one that an ended thread has left, or a new one.
#[cold]
#[inline(never)]
fn make(writer: &Writer) -> Option<&'static Stack> {
    let _whole = NoCancel::new();
    let _errno = ErrnoGuard::new();
    let stack = left().or_else(mapped)?;
    stack.depth.store(0, Ordering::Relaxed);
    stack.contexts.clear();
    let made = std::ptr::from_ref(stack).cast_mut().cast();
    match writer.extra.compare_exchange(null_mut(), made, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Some(stack),
        Err(_) => {
            // A signal handler was quicker.
            stack.extra.release();
            self::stack(writer)
        }
    }
}

fn left() -> Option<&'static Stack> {
    let mut at = STACKS.load(Ordering::Acquire);
    // SAFETY: null, or made by `mapped` and never unmapped. Pairs with the Release exchange there.
    while let Some(stack) = unsafe { at.as_ref() } {
        if stack.extra.take() {
            return Some(stack);
        }
        at = stack.next.load(Ordering::Relaxed);
    }
    None
}

fn mapped() -> Option<&'static Stack> {
    let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory, which concerns nobody.
    let at = unsafe { libc::mmap(null_mut(), size_of::<Stack>(), protection, kind, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    let at = at.cast::<Stack>();
    // SAFETY: zeros, aligned to a page, of the stack's size: an empty one of nobody. Never unmapped.
    let stack = unsafe { &*at };
    stack.extra.take();
    let mut first = STACKS.load(Ordering::Relaxed);
    loop {
        stack.next.store(first, Ordering::Relaxed);
        // Pairs with the Acquire load in `left`.
        match STACKS.compare_exchange_weak(first, at, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return Some(stack),
            Err(other) => first = other,
        }
    }
}

/// Whether nothing is recorded of this thread, and nothing can have begun that is still to be recorded the end of: an API's
/// callback need not look any further.
#[inline(always)]
pub fn is_dormant() -> bool {
    mask() == 0 && tls::get().is_null()
}

/// A call begins: records its entry, if its flags say so.
///
/// # Safety
/// What `entry` returns may be read as [`Put::put`] says.
#[inline(always)]
pub unsafe fn begin<E: Put + Copy>(flags: u8, id: u16, entry: impl FnOnce() -> E + Copy) {
    if flags & flag::RECORD == 0 {
        return skip(id);
    }
    let Some(writer) = writer() else { return lose_call() };
    let Some(stack) = stack(writer).or_else(|| make(writer)) else { return writer.lose_call() };
    let Some(level) = stack.push(id) else { return writer.lose_call() };
    if flags & flag::METERED != 0
        && let Some(way) = budget::way(writer, flags, id)
    {
        if matches!(way, Way::Summed) {
            level.how.store(clock::ticks(), Ordering::Relaxed);
        }
        return;
    }
    // SAFETY: contract: what `entry` returns may be read as `Put::put` says.
    if unsafe { put(writer, id, entry()) }.is_some() {
        level.how.store(RECORDED, Ordering::Relaxed);
    }
}

/// A call begins of which nothing is recorded: it matters only where another is open.
#[inline(always)]
fn skip(id: u16) {
    if let Some(writer) = existing(tls::get())
        && let Some(stack) = stack(writer)
        && stack.depth.load(Ordering::Relaxed) > 0
    {
        stack.push(id);
    }
}

/// A call ends: records its exit, if its entry was.
///
/// # Safety
/// What `exit` returns may be read as [`Put::put`] says.
#[inline(always)]
pub unsafe fn end<X: Put + Copy>(id: u16, exit: impl FnOnce() -> X) {
    let Some(writer) = existing(tls::get()) else { return };
    let Some(stack) = stack(writer) else { return };
    match stack.pop(id) {
        SKIPPED => {}
        // SAFETY: contract: what `exit` returns may be read as `Put::put` says.
        RECORDED => unsafe { put_exit(writer, id + 1, exit()) },
        began => add_up(writer, id, began),
    }
}

#[cold]
#[inline(never)]
fn add_up(writer: &Writer, id: u16, began: u64) {
    // What its entry said is gone: where there is no room for a sum more, it is lost.
    if !writer.add_up(id + 2, began, clock::ticks()) {
        writer.lose_call();
    }
}

/// Something that has no duration: its entry and its exit.
///
/// # Safety
/// What `entry` and `exit` return may be read as [`Put::put`] says.
#[inline(always)]
pub unsafe fn moment<E: Put + Copy, X: Put + Copy>(
    flags: u8,
    id: u16,
    entry: impl FnOnce() -> E + Copy,
    exit: impl FnOnce() -> X,
) {
    if flags != 0 {
        // SAFETY: what `entry` and `exit` return refers to what stays readable until this returns; `call` reads it no later.
        unsafe { call(flags, id, entry, |_| (), |()| exit(), || ()) };
    }
}

/// The thread leaves one of the contexts that it executes in turn, which are known by words of the API's, for another;
/// `is_over` if it will not come back. None if nothing is recorded of this thread, and by these flags of the function that
/// enters one nothing would be now.
#[inline]
pub fn switch(flags: u8, from: u64, to: u64, is_over: bool) -> Option<Switched> {
    let writer = if flags & flag::RECORD != 0 { writer() } else { existing(tls::get()) }?;
    let stack = stack(writer).or_else(|| make(writer))?;
    Some(stack.contexts.switch(from, to, is_over))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> &'static Stack {
        mapped().expect("memory")
    }

    fn push(stack: &Stack, id: u16, how: u64) {
        stack.push(id).expect("room").how.store(how, Ordering::Relaxed);
    }

    #[test]
    fn an_end_finds_its_begin() {
        let stack = empty();
        push(stack, 8, RECORDED);
        push(stack, 12, SKIPPED);
        push(stack, 8, 77);
        assert_eq!(
            [stack.pop(8), stack.pop(12), stack.pop(8), stack.pop(8)],
            [77, SKIPPED, RECORDED, SKIPPED]
        );
    }

    #[test]
    fn what_has_no_end_is_given_up_and_what_has_no_begin_is_passed_over() {
        let stack = empty();
        push(stack, 8, RECORDED);
        push(stack, 12, 99);
        push(stack, 16, 99);
        assert_eq!(stack.pop(20), SKIPPED);
        assert_eq!(stack.pop(8), RECORDED);
        assert_eq!(stack.depth.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn beyond_the_deepest_nothing_is_mixed_up() {
        let stack = empty();
        (0..LEVELS).for_each(|_| push(stack, 8, RECORDED));
        assert!(stack.push(12).is_none() && stack.push(16).is_none());
        assert_eq!([stack.pop(16), stack.pop(12)], [SKIPPED; 2]);
        assert!((0..LEVELS).all(|_| stack.pop(8) == RECORDED));
        assert_eq!(stack.pop(8), SKIPPED);
    }

    #[test]
    fn an_ended_threads_stack_is_anothers() {
        let first = empty();
        first.extra.release();
        let second = left().expect("one that is left");
        assert!(std::ptr::eq(first, second) && !second.extra.take());
    }
}
