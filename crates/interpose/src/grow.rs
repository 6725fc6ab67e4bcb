//! A larger ring for a thread that filled its own before the drainer came.
//!
//! A thread begins with little. A library that is loaded may make tens of thousands of calls
//! within a few milliseconds; the drainer, a process like others, may get a processor later
//! than that. The thread goes on in a ring four times as large, and again, up to what the
//! session says and then sixteen times that: so long the drainer may sleep, and nothing is
//! lost. What stands in the ring it leaves is drained first, into the same stream. Not for
//! threads that wait for room instead (`--on-full block`).

use std::sync::atomic::Ordering;

use hetrace_ring::clock;
use hetrace_ring::writer::Writer;

use crate::arena::Space;
use crate::own::{self, Process};
use crate::process::{Session, session};
use crate::spent::make_memory;
use crate::{account, arena};

/// How many times as large the next ring is.
const STEP: u64 = 4;
/// The largest ring, in rings of the session's size.
const LARGEST: u64 = 16;
/// And in bytes, whatever that is: making a ring takes the thread a millisecond for
/// each MiB or two.
const LARGEST_BYTES: u64 = 64 << 20;
/// What all rings of a process and API that are larger than the session's may have together.
const TOGETHER: u64 = 32;
/// Ticks, about a millisecond, for which a thread does not ask again.
const PAUSE: u64 = 1 << 21;

/// For [`Writer::set_grow`].
///
/// # Safety
/// As [`Grow`](hetrace_ring::writer::Grow) says: the writer is this thread's, attached, and its
/// record waits for room.
#[cold]
pub(crate) unsafe fn grow(writer: &Writer) -> bool {
    let (Some(session), Some(process)) = (session(), own::process()) else { return false };
    let now = clock::ticks();
    if !writer.may_grow(now) {
        return false;
    }
    let Some(old) = writer.header() else { return false };
    let (size, number) = (writer.data_bytes(), old.number);
    let ring = u64::from(session.control().ring_bytes);
    let larger = size.saturating_mul(STEP);
    let wanted = if size < ring { larger.min(ring) } else { larger };
    // One that a handler that did not return has left to this thread.
    if writer.next().is_none() || writer.next_data_bytes() <= size {
        give_next_back(writer, process);
        let found = (wanted <= ring.saturating_mul(LARGEST).min(LARGEST_BYTES.max(ring)))
            .then(|| {
                let make = || more(session, process, writer, wanted, ring);
                arena::claim(process, wanted).or_else(|| make_memory(wanted, make))
            })
            .flatten();
        let Some(ring) = found else {
            writer.grow_later(now.wrapping_add(PAUSE));
            return false;
        };
        // SAFETY: `claim` and `carve` return rings of the arena, which stays mapped as long as the process
        // is this one, in state CLAIMED: no other thread has it.
        unsafe { writer.set_next(ring.base, ring.data) };
    }
    let Some(next) = writer.next() else { return false };
    let spent = account::of_commands(old);
    let (base, data) = (std::ptr::from_ref(next).cast_mut().cast(), writer.next_data_bytes());
    if writer.is_next_untouched() {
        arena::begin(Space { base, data }, writer.tid(), number.wrapping_add(1));
    } else {
        next.state.begin();
    }
    // SAFETY: the ring of `set_next`, above or of an earlier time.
    unsafe { writer.move_to(base, data) };
    account::moved(writer, spent);
    true
}

/// A new ring, within what the process may have of large ones.
fn more(session: &Session, process: &Process, writer: &Writer, wanted: u64, ring: u64) -> Option<Space> {
    let making = &writer.making;
    // What was booked for one that was never made.
    process.larger.fetch_sub(making.booked.get(), Ordering::Relaxed);
    making.booked.set(0);
    if wanted <= ring {
        return arena::carve(session, process, wanted, making);
    }
    let most = ring.saturating_mul(TOGETHER);
    let mine = process.larger.fetch_add(wanted, Ordering::Relaxed).saturating_add(wanted) <= most;
    making.booked.set(wanted);
    let base = mine.then(|| arena::carve(session, process, wanted, making)).flatten();
    if base.is_none() {
        process.larger.fetch_sub(wanted, Ordering::Relaxed);
    }
    making.booked.set(0);
    base
}

/// Gives back a ring that was got for a thread and that it does not need, and what was taken for one.
pub(crate) fn give_next_back(writer: &Writer, process: &Process) {
    let Some(next) = writer.next() else { return };
    writer.forget_next();
    // Nobody records there: what stands in it is who would have.
    arena::end(process, next);
}

/// The thread ends: nobody will make the ring that a handler that did not return has left half done.
pub(crate) fn give_making_back(writer: &Writer, process: &Process) {
    process.larger.fetch_sub(writer.making.booked.get(), Ordering::Relaxed);
    writer.making.booked.set(0);
    if let Some(session) = session() {
        arena::unmake(session, process, &writer.making);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use hetrace_ring::abi::{Control, Reported};

    use super::*;

    const RING: u64 = 1 << 20;

    /// What a thread does in larger rings is in `tests/attaching.rs`. Here is a process without an arena: none is made.
    fn try_more(process: &Process, writer: &Writer, wanted: u64) -> (bool, u64, u64) {
        // SAFETY: both are made of numbers and atomics, for which zeros are valid.
        let (control, reported): (Box<Control>, Box<Reported>) =
            unsafe { (Box::new(std::mem::zeroed()), Box::new(std::mem::zeroed())) };
        control.budget.store(1 << 30, Ordering::Relaxed);
        let session = Session::in_memory(Box::leak(control), Box::leak(reported));
        let made = more(&session, process, writer, wanted, RING).is_some();
        (made, process.larger.load(Ordering::Relaxed), writer.making.booked.get())
    }

    #[test]
    fn what_is_booked_for_a_ring_that_is_not_made_is_given_back() {
        // SAFETY: made of atomics, for which zeros are valid.
        let process: Box<Process> = unsafe { Box::new(std::mem::zeroed()) };
        let writer = Writer::new();
        process.larger.store(3 * RING, Ordering::Relaxed);
        assert_eq!(try_more(&process, &writer, 4 * RING), (false, 3 * RING, 0));
        assert_eq!(try_more(&process, &writer, RING), (false, 3 * RING, 0), "no larger than the session's");
        assert_eq!(process.share.taken(0), 0, "and what was taken of the budget");
    }

    #[test]
    fn what_a_handler_that_left_has_booked_is_given_back() {
        // SAFETY: made of atomics, for which zeros are valid.
        let process: Box<Process> = unsafe { Box::new(std::mem::zeroed()) };
        let writer = Writer::new();
        process.larger.store(7 * RING, Ordering::Relaxed);
        writer.making.booked.set(4 * RING);
        assert_eq!(try_more(&process, &writer, RING), (false, 3 * RING, 0));
        // Or at the thread's end.
        writer.making.booked.set(2 * RING);
        give_making_back(&writer, &process);
        assert_eq!((process.larger.load(Ordering::Relaxed), writer.making.booked.get()), (RING, 0));
    }

    #[test]
    fn large_rings_are_few() {
        // SAFETY: made of atomics, for which zeros are valid.
        let process: Box<Process> = unsafe { Box::new(std::mem::zeroed()) };
        let writer = Writer::new();
        let most = TOGETHER * RING;
        process.larger.store(most - 4 * RING + 1, Ordering::Relaxed);
        assert_eq!(try_more(&process, &writer, 4 * RING), (false, most - 4 * RING + 1, 0));
        assert_eq!(process.share.taken(0), 0, "nothing was tried");
    }
}
