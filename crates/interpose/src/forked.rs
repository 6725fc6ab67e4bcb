//! A signal handler that forks, and has interrupted a record of its thread.
//!
//! In the child the handler returns into the middle of that record. Its ring is not there
//! (`MADV_DONTFORK`), and its writer was cleared (`MADV_WIPEONFORK`), so the child would die where
//! without a tracer it lives. It gets the writer back as it was, and memory of nobody in the
//! arena's place: there the record ends, which is the parent's. With the next one the writer finds
//! that it has no ring ([`Writer::continue_adrift`]).
//!
//! Not for a child that was made without the C library's `fork`.

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::writer::Writer;

use crate::errno::ErrnoGuard;
use crate::{own, tls};

/// What the child needs.
struct Saved {
    writer: Writer,
    arena: AtomicU64,
    length: AtomicU64,
    /// The thread that forks; 0 if what is here is nobody's.
    by: AtomicU64,
}

static SAVED: Saved = Saved {
    writer: Writer::new(),
    arena: AtomicU64::new(0),
    length: AtomicU64::new(0),
    by: AtomicU64::new(0),
};

/// Sees to it that forks are noticed.
pub(crate) fn prepare() {
    // SAFETY: the functions do what may be done between `fork` and its return, in handlers, too.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

extern "C" fn before() {
    let Some(writer) = tls::writer_at(tls::get()).filter(|w| w.is_busy()) else { return };
    let Some(process) = own::process() else { return };
    // Another thread's handler forks just now: of two such children one can be helped.
    if SAVED.by.compare_exchange(0, own::this_thread(), Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    let arena = process.arena.load(Ordering::Relaxed) as u64;
    // A child that was made like this has none yet, but memory in its parent's place already.
    if arena != 0 {
        SAVED.arena.store(arena, Ordering::Relaxed);
        SAVED.length.store(process.limit.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    SAVED.writer.copy_from(writer);
}

extern "C" fn in_parent() {
    let me = own::this_thread();
    // Pairs with the Acquire exchange of the next thread.
    _ = SAVED.by.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed);
}

extern "C" fn in_child() {
    if SAVED.by.swap(0, Ordering::Relaxed) != own::this_thread() {
        return;
    }
    let _errno = ErrnoGuard::new();
    let (arena, length) = (SAVED.arena.load(Ordering::Relaxed), SAVED.length.load(Ordering::Relaxed));
    // SAFETY: where the parent has its arena there is nothing in the child, or what was put there
    // when its parent was forked likewise: then the call fails, and all is well.
    let there = unsafe {
        libc::mmap(
            arena as *mut libc::c_void,
            length as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    // SAFETY: the C library's own place for this thread's errno.
    if there == libc::MAP_FAILED && unsafe { *libc::__errno_location() } != libc::EEXIST {
        return;
    }
    // The place of this thread's writer, cleared by the fork.
    if let Some(writer) = tls::writer_at(tls::get()) {
        writer.continue_adrift(&SAVED.writer);
    }
}
