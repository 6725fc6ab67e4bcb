//! Waiting for room in a ring: only for threads of a library's own. The program's do
//! not wait for the launcher unless the session says so.

use hetrace_ring::writer::{drainer_lives, nap, wake};

use crate::process::session;
use crate::tls;

/// How long it is waited for the launcher to make room, and how often it is looked.
const NAP_NS: i64 = 100_000;
const NAPS: u32 = 5_000;

/// Waits until this thread's ring has room for so many bytes, or at least half of it is
/// free. `false`: the launcher does not get there, or is gone.
#[inline]
pub fn await_room(bytes: usize) -> bool {
    has_room(bytes) || wait(bytes)
}

/// Returns whether this thread's ring has room for so many bytes, or at least half of it is free.
pub(crate) fn has_room(bytes: usize) -> bool {
    // Its first record gets it a ring, which is empty.
    free_of_all().is_none_or(|(free, all)| free >= (bytes as u64).min(all / 2))
}

/// Returns how many bytes of this thread's ring are free; 0 if it has none.
pub(crate) fn free_bytes() -> usize {
    free_of_all().map_or(0, |(free, _)| free as usize)
}

/// Bytes of this thread's ring that are free, and all of it; `None` if it has no ring.
fn free_of_all() -> Option<(u64, u64)> {
    let writer = tls::writer_at(tls::get())?;
    let (header, size) = (writer.header()?, writer.data_bytes());
    let used = header.head.published().wrapping_sub(header.tail.released());
    Some((size.saturating_sub(used), size))
}

#[cold]
#[inline(never)]
fn wait(bytes: usize) -> bool {
    let Some(session) = session() else { return false };
    let control = session.control();
    for _ in 0..NAPS {
        if !drainer_lives(control) {
            return false;
        }
        wake(&session.reported().wake);
        nap(NAP_NS);
        if has_room(bytes) {
            return true;
        }
    }
    false
}
