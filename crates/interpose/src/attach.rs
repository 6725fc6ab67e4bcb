//! A thread's first recorded call, and its end. Slow paths, but nothing is allocated from the
//! program's heap, no lock is taken and no descriptor opened, and a signal handler may come
//! first or in between: what it finds half done it does for itself.

use std::sync::atomic::Ordering;

use hetrace_ring::abi::{Control, option};
use hetrace_ring::clock;
use hetrace_ring::writer::{Making, Writer};

use crate::arena::Space;
use crate::errno::ErrnoGuard;
use crate::extra::Extra;
use crate::grow::{give_making_back, give_next_back, grow};
use crate::own::{self, Process};
use crate::process::{KEY, Session, session};
use crate::spent::make_memory;
use crate::{account, arena, errors, tls};

/// Data bytes of a thread's first ring. One that fills it gets a larger one.
const FIRST: u64 = 64 << 10;
/// The smallest ring, where memory is short.
const SMALL: u64 = 16 << 10;
/// Of the memory that is left a first ring takes no more than one part in this many.
const SHARE: u64 = 64;
/// Ticks, some milliseconds, for which nobody tries again after there was no room.
const PAUSE: u64 = 1 << 24;
/// Marks the owner of a writer that is found by its task id: the task shares the local storage
/// of another.
const TASK: u64 = 1 << 63;

/// This thread's writer, if it has one, made if need be.
#[cold]
#[inline(never)]
pub(crate) fn attach() -> Option<&'static Writer> {
    let session = session()?;
    let _errno = ErrnoGuard::new();
    let existing = tls::get();
    let mut left = None;
    match tls::writer_at(existing) {
        Some(writer) if writer.owner.load(Ordering::Relaxed) == own::this_thread() => {
            if !writer.is_here() && own::task() != writer.tid() {
                return of_task(session, own::task());
            }
            if writer.attached() {
                // The thread is on another stack than before, its handlers' or one of its own
                // making.
                writer.settle();
                return Some(writer);
            }
            left = Some(writer).filter(|w| w.was_left_beginning());
        }
        // In a forked child, zeros, or by now another thread's.
        _ => {}
    }
    // First, since it finds out where the thread's id is.
    let process = ready(session)?;
    let writer = match left {
        Some(writer) => writer,
        None => {
            let writer = take(process, own::this_thread(), own::tid())?;
            // From here on it is found by whoever comes after a handler that does not return.
            if !tls::replace(existing, Some(writer)) {
                // A signal handler was quicker.
                own::give_writer(writer);
                return tls::writer_at(tls::get());
            }
            writer
        }
    };
    ends_with_thread(writer);
    if !begin(session, process, writer) {
        tls::replace(std::ptr::from_ref(writer).cast_mut(), None);
        own::give_writer(writer);
        return None;
    }
    if !std::ptr::eq(tls::get(), writer) {
        // A signal handler found none, and has made one.
        give_up(writer);
        return tls::writer_at(tls::get());
    }
    errors::report_once();
    tls::writer_at(tls::get())
}

/// When this thread ends, others may have its ring.
fn ends_with_thread(writer: &'static Writer) {
    let key = KEY.load(Ordering::Relaxed);
    if key != u32::MAX {
        // SAFETY: `KEY` is a key of `join`'s making, with `thread_ended` as its destructor, which
        // takes the address of a writer.
        unsafe { libc::pthread_setspecific(key, std::ptr::from_ref(writer).cast()) };
    }
}

/// The writer of a task that shares its local storage with another (`clone` with `CLONE_VM`).
fn of_task(session: &Session, task: u32) -> Option<&'static Writer> {
    let owner = TASK | u64::from(task);
    let process = match own::writer_of(owner) {
        Some(writer) if writer.attached() => return Some(writer),
        _ => ready(session)?,
    };
    let left = own::writer_of(owner).filter(|w| w.was_left_beginning());
    let writer = left.or_else(|| take(process, owner, task))?;
    if !begin(session, process, writer) {
        own::give_writer(writer);
        return None;
    }
    Some(writer)
}

/// The process's part, if there may be room for a ring.
fn ready(session: &Session) -> Option<&'static Process> {
    arena::ready(session).filter(|p| clock::ticks() >= p.not_before.load(Ordering::Relaxed))
}

/// A writer without a ring.
fn take(process: &Process, owner: u64, tid: u32) -> Option<&'static Writer> {
    let Some(writer) = own::take_writer(owner) else {
        no_room(process);
        return None;
    };
    writer.begin();
    writer.settle();
    writer.set_tid(tid);
    writer.set_grow(grow);
    Some(writer)
}

/// Gives a writer its first ring. A handler that does not return may come at any instruction: then
/// this is done again, with what was got so far.
fn begin(session: &Session, process: &Process, writer: &Writer) -> bool {
    writer.begin();
    writer.settle();
    if writer.next().is_none() {
        let Some(ring) = first_ring(session, process, &writer.making) else {
            no_room(process);
            return false;
        };
        // SAFETY: `first_ring` returns a ring of the arena, which stays mapped as long as the process
        // is this one, in state CLAIMED: no other thread has it.
        unsafe { writer.set_next(ring.base, ring.data) };
    }
    let Some(next) = writer.next() else { return false };
    let (base, data) = (std::ptr::from_ref(next).cast_mut().cast(), writer.next_data_bytes());
    if writer.is_next_untouched() {
        arena::begin(Space { base, data }, writer.tid(), 0);
    } else {
        next.state.begin();
    }
    // SAFETY: the ring of `set_next`, above or of an earlier time: no other writer uses it. Arena and
    // control file stay mapped as long as the process is this one.
    unsafe { writer.attach(base, data, session.control_pointer(), session.reported_pointer()) };
    account::begin(writer);
    true
}

/// Nobody tries again for a while.
fn no_room(process: &Process) {
    if let Some(header) = own::header(process) {
        header.rings_failed.fetch_add(1, Ordering::Relaxed);
    }
    process.not_before.store(clock::ticks().wrapping_add(PAUSE), Ordering::Relaxed);
}

/// A ring for a thread that has none.
fn first_ring(session: &Session, process: &Process, making: &Making) -> Option<Space> {
    let control = session.control();
    let mut data = first_bytes(control);
    let least = data.min(SMALL);
    let room = arena::left(session, process) / SHARE;
    while data > least && data > room {
        data /= 2;
    }
    let make = || make_memory(data, || arena::carve(session, process, data, making));
    arena::claim(process, least).or_else(make)
}

/// Data bytes of a thread's first ring. Whoever waits for room does not move to a larger one.
fn first_bytes(control: &Control) -> u64 {
    let ring = u64::from(control.ring_bytes);
    let block = control.options.load(Ordering::Relaxed) & option::BLOCK != 0;
    if block { ring } else { ring.min(FIRST) }
}

/// Gives back a writer that nobody used.
fn give_up(writer: &'static Writer) {
    if let Some(process) = own::process() {
        if let Some(header) = writer.header() {
            arena::end(process, header);
        }
        give_next_back(writer, process);
        give_making_back(writer, process);
    }
    own::give_writer(writer);
}

/// A call of this thread is not recorded: it has no ring.
#[cold]
#[inline(never)]
pub(crate) fn lose_call() {
    match own::process().and_then(own::header) {
        Some(header) => _ = header.calls_without_ring.fetch_add(1, Ordering::Relaxed),
        None => session().iter().for_each(|session| _ = session.reported().calls_without_arena.increase()),
    }
}

/// Destructor of the thread's key: another may have its ring now. A later call of this
/// thread attaches again.
pub(crate) unsafe extern "C" fn thread_ended(writer: *mut libc::c_void) {
    let _errno = ErrnoGuard::new();
    let word = tls::get();
    if !std::ptr::eq(word, writer.cast()) {
        return; // Of a parent, from which this process was forked.
    }
    let Some(writer) = tls::writer_at(word) else { return };
    // From here on a handler of this thread attaches anew.
    tls::replace(word, None);
    // A forked child may have given its place to another.
    if writer.owner.load(Ordering::Relaxed) != own::this_thread() {
        return;
    }
    account::end(writer);
    writer.flush();
    // SAFETY: an API stores nothing but null, or a pointer to what begins with an `Extra` and is
    // never freed (`thread_extra` says so).
    if let Some(extra) = unsafe { writer.extra.load(Ordering::Relaxed).cast::<Extra>().as_ref() } {
        extra.release();
    }
    give_up(writer);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// What a thread does with it, with memory and without, is in `tests/attaching.rs`.
    #[test]
    fn a_first_ring_is_small_unless_the_thread_stays_in_it() {
        // SAFETY: all of it is numbers and atomics, for which zeros are valid.
        let mut control: Box<Control> = unsafe { Box::new(std::mem::zeroed()) };
        for (ring, first) in [(1 << 20, FIRST), (32 << 10, 32 << 10)] {
            control.ring_bytes = ring;
            control.options.store(0, Ordering::Relaxed);
            assert_eq!(first_bytes(&control), first);
            control.options.store(option::BLOCK, Ordering::Relaxed);
            assert_eq!(first_bytes(&control), u64::from(ring), "it waits for room there");
        }
    }
}
