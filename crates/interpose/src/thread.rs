//! The thread that runs: its writer, and whether what it does is the program's.

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

use hetrace_ring::writer::Writer;

use crate::attach::attach;
use crate::dlsym::call_from_outside;
use crate::elf::Object;
use crate::errno::ErrnoGuard;
use crate::real::is_ours;
use crate::tls;

/// This thread's writer, made if need be.
#[inline(always)]
pub(crate) fn writer() -> Option<&'static Writer> {
    existing(tls::get()).or_else(attached)
}

/// The writer that the thread's word names, if it is this task's.
#[inline(always)]
pub(crate) fn existing(word: *mut Writer) -> Option<&'static Writer> {
    tls::writer_at(word).filter(|w| w.is_here())
}

#[cold]
#[inline(never)]
pub(crate) fn attached() -> Option<&'static Writer> {
    attach()
}

/// The writer of a call that goes on: after the real function, which may have forked, or
/// ended the thread's ring.
#[inline(always)]
pub(crate) fn again(writer: &'static Writer) -> Option<&'static Writer> {
    let word = tls::get();
    if std::ptr::eq(word, writer) { Some(writer) } else { changed(word) }
}

#[cold]
#[inline(never)]
fn changed(word: *mut Writer) -> Option<&'static Writer> {
    if word.is_null() {
        return None; // No ring is taken for the end of a call alone.
    }
    existing(word).or_else(attached)
}

/// Whose call it is that came while the tracer itself may be calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The tracer's own, or made by what it has called.
    Own,
    /// The program's: a signal handler has left the tracer's work for good.
    Programs,
    /// The program's, and what it interrupted may go on: nothing is recorded of it.
    Handlers,
}

/// Finds out whose call it is that this thread makes just now. Where the stack at which this runs shows nothing, the place of
/// the program's own return address does: as deep as a wrapper's frames are a call after a jump out of the tracer's work looks
/// like a part of that.
#[cold]
#[inline(never)]
pub(crate) fn whose(writer: &Writer) -> Whose {
    if !writer.is_inside() {
        return Whose::Programs;
    }
    let _errno = ErrnoGuard::new();
    if !writer.is_own_call() {
        return if writer.is_inside() { Whose::Handlers } else { Whose::Programs };
    }
    // What the tracer has called may have jumped here: then nothing of it is on the stack.
    let Some((from, place)) = call_from_outside(guarded as *const c_void) else { return Whose::Own };
    match Object::holding(from) {
        None => Whose::Own, // Nobody knows.
        Some(_) if writer.is_left_by(place as u64) => Whose::Programs,
        // From deeper than that, where a handler is, or what came after one that jumped; nothing that the tracer calls is in
        // the program itself.
        Some(object) if object.is_program() && !is_ours(from) => Whose::Handlers,
        Some(_) => Whose::Own,
    }
}

/// Whether this thread's calls are the tracer's own just now.
pub(crate) fn is_own() -> bool {
    recording().is_some_and(is_own_call)
}

/// Whether a call that this writer's thread makes is not the program's.
pub(crate) fn is_own_call(writer: &Writer) -> bool {
    writer.is_own_call() && whose(writer) == Whose::Own
}

/// Runs `work`, during which this thread's calls are the tracer's own. Returns what it returns.
pub fn with_guard<R>(work: impl FnOnce() -> R) -> Option<R> {
    let mut work = Some(work);
    let mut result = None;
    guarded(&mut || result = work.take().map(|work| work()));
    result
}

/// As [`with_guard`], in one function: where it is on the stack the tracer's own work goes on.
#[inline(never)]
fn guarded(work: &mut dyn FnMut()) {
    let Some(writer) = writer() else { return work() };
    writer.enter();
    work();
    // The thread's writer may have changed meanwhile. Said behind the call, which is so not this function's last instruction.
    if let Some(writer) = recording() {
        writer.leave();
    }
}

/// This task's writer, if it has one with a ring.
#[inline]
pub(crate) fn recording() -> Option<&'static Writer> {
    let word = tls::get();
    let writer = existing(word).or_else(|| (!word.is_null()).then(attached).flatten())?;
    writer.attached().then_some(writer)
}

/// This thread's word for the API's own use, which its signal handlers use, too. `None` before the
/// first recorded call; NULL at first, and again in a forked child. What it points to begins
/// with an [`Extra`](crate::Extra), and is never freed.
pub fn thread_extra() -> Option<&'static AtomicPtr<libc::c_void>> {
    recording().map(|writer| &writer.extra)
}

/// This thread's id, as its records have it; 0 before the first recorded call.
pub fn thread_id() -> u32 {
    recording().map_or(0, Writer::tid)
}
