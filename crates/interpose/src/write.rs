//! Writing of a record by a given writer, at a given time. Nothing here attaches a thread to a ring.

use hetrace_ring::clock;
use hetrace_ring::record::{HEAD, MAX_RECORD};
use hetrace_ring::writer::Writer;

use crate::put::Put;

/// Writes a record at a time read earlier, if there is room.
///
/// # Safety
/// As [`Put::put`] for `fields`.
#[inline(always)]
pub(crate) unsafe fn write_at(writer: &Writer, id: u16, fields: impl Put + Copy, time: u64) -> bool {
    let length = HEAD + fields.size();
    let body = |at: *mut u8| {
        // SAFETY: `length` was made from the fields' size.
        unsafe { fields.put(at) };
    };
    // SAFETY: `body` writes what `length` says, and that is not too much.
    length <= MAX_RECORD && unsafe { writer.record_at(id, length, time, body) }.is_some()
}

/// Records something that is not a call, now. Not tried again, and not counted if there is no room.
///
/// # Safety
/// As [`Put::put`] for `fields`.
pub(crate) unsafe fn record_on(writer: &Writer, id: u16, fields: impl Put + Copy) {
    // Not by `put_at`, which counts a call as lost.
    // SAFETY: what `fields` refers to stays readable until this returns, and is read no later.
    unsafe { write_at(writer, id, fields, clock::ticks()) };
}
