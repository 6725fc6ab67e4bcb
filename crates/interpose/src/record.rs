//! Records of this thread: parts of calls, and what is not a call.

use std::ffi::CStr;

use hetrace_ring::record::{HEAD, MAX_RECORD};
use hetrace_ring::writer::Writer;

use crate::attach::lose_call;
use crate::put::{Plain, Put, Raw};
use crate::thread::{Whose, attached, whose, writer};
use crate::write::write_at;

/// Records one part of a call; tries again once after attaching to a ring.
///
/// # Safety
/// As [`Put::put`] for `fields`.
#[inline(always)]
pub(crate) unsafe fn put(writer: &Writer, id: u16, fields: impl Put + Copy) -> Option<u64> {
    let length = HEAD + fields.size();
    if length > MAX_RECORD {
        writer.lose_call();
        return None;
    }
    let body = |at: *mut u8| {
        // SAFETY: `length` was made from the fields' size.
        unsafe { fields.put(at) };
    };
    // SAFETY: `body` writes what `length` says.
    match unsafe { writer.record(id, length, body) } {
        Some(time) => Some(time),
        // SAFETY: what `fields` refers to stays readable until this returns, and is read no later; `length` was checked.
        None => unsafe { put_again(writer, id, fields) },
    }
}

/// As [`put`], for a call whose entry was recorded: a process that was forked
/// in between has no part in it, and attaches to no ring for it.
///
/// # Safety
/// As [`put`].
#[inline(always)]
pub(crate) unsafe fn put_exit(writer: &Writer, id: u16, fields: impl Put + Copy) {
    let length = HEAD + fields.size();
    let body = |at: *mut u8| {
        // SAFETY: `length` was made from the fields' size.
        unsafe { fields.put(at) };
    };
    // SAFETY: `body` writes what `length` says, and that is not too much.
    if length > MAX_RECORD || unsafe { writer.record(id, length, body) }.is_none() {
        writer.lose_call();
    }
}

/// As [`put`], at a time read earlier. Returns whether there was room.
///
/// # Safety
/// As [`put`].
#[inline(always)]
pub(crate) unsafe fn put_at(writer: &Writer, id: u16, fields: impl Put + Copy, time: u64) -> bool {
    // SAFETY: what `fields` refers to stays readable until this returns, and is read no later.
    let done = unsafe { write_at(writer, id, fields, time) };
    if !done {
        writer.lose_call();
    }
    done
}

/// # Safety
/// As [`put`].
#[cold]
#[inline(never)]
unsafe fn put_again(writer: &Writer, id: u16, fields: impl Put + Copy) -> Option<u64> {
    let writer = again_by(writer)?;
    let length = HEAD + fields.size();
    // SAFETY: `length` was made from the fields' size, and `put` found that it is not too much; what they refer to stays
    // readable until this returns.
    let time = unsafe {
        writer.record(id, length, |at| {
            fields.put(at);
        })
    };
    if time.is_none() {
        writer.lose_call();
    }
    time
}

/// The writer with which a call's entry is tried once more that had no room; none if it is not the program's, or counted as
/// lost.
#[cold]
#[inline(never)]
fn again_by(writer: &Writer) -> Option<&Writer> {
    if !writer.attached() {
        // A process that was forked: its writer is empty, and gets a ring now.
        return attached().or_else(|| (lose_call(), None).1);
    }
    match writer.is_inside().then(|| whose(writer)) {
        Some(Whose::Own) => None,
        Some(Whose::Programs) => Some(writer),
        Some(Whose::Handlers) | None => (writer.lose_call(), None).1,
    }
}

/// Records something that is not a call: what is known of a device. Returns
/// whether there was room.
///
/// # Safety
/// As [`Put::put`] for `fields`.
pub unsafe fn record_extra(id: u16, fields: impl Put + Copy) -> bool {
    // SAFETY: what `fields` refers to stays readable until this returns, and is read no later.
    unsafe { record_here(id, fields) }
}

/// As [`record_extra`], inlined: for what is recorded often.
///
/// # Safety
/// As [`Put::put`] for `fields`.
#[inline(always)]
pub(crate) unsafe fn record_here(id: u16, fields: impl Put + Copy) -> bool {
    let Some(writer) = writer() else { return false };
    // SAFETY: what `fields` refers to stays readable until this returns, and is read no later.
    unsafe { put(writer, id, fields) }.is_some()
}

/// As [`record_extra`], at a time read earlier.
///
/// # Safety
/// As [`Put::put`] for `fields`.
#[inline]
pub unsafe fn record_extra_at(id: u16, fields: impl Put + Copy, time: u64) -> bool {
    let Some(writer) = writer() else { return false };
    // SAFETY: what `fields` refers to stays readable until this returns, and is read no later.
    unsafe { write_at(writer, id, fields, time) }
}

/// Records plain data and a text behind it, which ends with a NUL. Returns
/// whether there was room.
pub fn record_with_text<T: Copy>(id: u16, record: &T, text: &CStr) -> bool {
    // SAFETY: plain data and a text that ends.
    unsafe { record_extra(id, (Plain(record), Raw(text.to_bytes_with_nul()))) }
}
