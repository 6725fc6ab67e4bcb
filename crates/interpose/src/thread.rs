//! The thread that runs: its writer, and whether what it does is the program's.

use std::sync::atomic::AtomicPtr;

use hetrace_ring::writer::Writer;

use crate::attach::attach;
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

/// Whether this thread's calls are the tracer's own just now.
pub(crate) fn is_own() -> bool {
    recording().is_some_and(Writer::is_own_call)
}

/// Runs `work`, during which this thread's calls are the tracer's own.
pub fn with_guard<R>(work: impl FnOnce() -> R) -> R {
    let Some(writer) = writer() else { return work() };
    writer.enter();
    let result = work();
    // The thread's writer may have changed meanwhile.
    if let Some(writer) = recording() {
        writer.leave();
    }
    result
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
