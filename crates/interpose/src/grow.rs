//! A larger ring for a thread that filled its own before the drainer came.
//!
//! A library that is loaded may make tens of thousands of calls within a few
//! milliseconds; the drainer, a process like others, may get a processor later than
//! that. The thread goes on in a ring four times as large, and again, up to sixteen times
//! the first: so long the drainer may sleep, and nothing is lost. What stands in the
//! ring it leaves is drained first, into the same stream. Not for threads that may wait
//! for room instead (`--on-full block`).

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::abi::CONTROL_FILE;
use hetrace_ring::writer::Writer;

use crate::attach::{SignalsBlocked, claim, make, open};
use crate::process::{PATH, Session, session};

/// How many times as large the next ring is.
const STEP: u64 = 4;
/// The largest ring, in first rings.
const LARGEST: u64 = 16;
/// And in bytes, whatever the first is: making a ring takes the thread a millisecond for
/// each MiB or two.
const LARGEST_BYTES: u64 = 64 << 20;
/// What all larger rings of a process and API may have together, in first rings.
const TOGETHER: u64 = 32;

/// Data bytes of the larger rings of this process.
pub(crate) static GROWN: AtomicU64 = AtomicU64::new(0);

/// For [`Writer::grow`].
///
/// # Safety
/// The writer is this thread's, attached, and its record waits for room.
#[cold]
pub(crate) unsafe fn grow(writer: &mut Writer) -> bool {
    let Some(session) = session() else { return false };
    let _signals = SignalsBlocked::new();
    let Some((size, number)) = writer.header().map(|h| (h.data_bytes, h.number)) else { return false };
    let first = u64::from(session.control().ring_bytes);
    let wanted = size.saturating_mul(STEP);
    if wanted > first.saturating_mul(LARGEST).min(LARGEST_BYTES) {
        return false;
    }
    let Some(base) = claim(session, wanted).or_else(|| more(session, wanted, first)) else { return false };
    open(session, base, number.wrapping_add(1));
    // SAFETY: a mapping that lives for ever of a ring that this thread claimed, and
    // signals are blocked.
    unsafe { writer.move_to(base) };
    true
}

/// A new ring, if that leaves enough of the memory file system to the program.
fn more(session: &Session, wanted: u64, first: u64) -> Option<*mut u8> {
    let most = first.saturating_mul(TOGETHER);
    let mine = GROWN.fetch_add(wanted, Ordering::Relaxed).saturating_add(wanted) <= most;
    let base = if mine && leaves_half(session, wanted) {
        usize::try_from(wanted).ok().and_then(|data| make(session, data))
    } else {
        None
    };
    if base.is_none() {
        GROWN.fetch_sub(wanted, Ordering::Relaxed);
    }
    base
}

/// Whether half of the file system stays free: programs share memory there, too.
fn leaves_half(session: &Session, wanted: u64) -> bool {
    let mut buffer = [0; PATH + 64];
    let Some(path) = session.path(&mut buffer, CONTROL_FILE.as_bytes()) else { return false };
    // SAFETY: all bit patterns are valid, and the call fills it in.
    let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a NUL-terminated path and a place for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut room) } != 0 {
        return false;
    }
    let (free, all) =
        (room.f_bavail.saturating_mul(room.f_frsize), room.f_blocks.saturating_mul(room.f_frsize));
    free.saturating_sub(wanted) >= all / 2
}
