//! From a buffer of CUPTI's to records in the ring of the thread that gives it back.
//!
//! The version and the shift of times are numbers that stand for themselves, set before CUPTI gives a buffer back.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hetrace_interpose::put::{Caps, Plain, text};
use hetrace_interpose::ring::abi::{CommandRecord, PendingRecord, special};
use hetrace_interpose::ring::clock::{nanoseconds, ticks};
use hetrace_interpose::table::Table;
use hetrace_interpose::{await_room, record_extra};

use super::api::API;
use super::layout::{Activity, Kernel, Lengths, Unread, read};
use super::{chosen, expected, own};
use crate::device;

/// `CUPTI_ERROR_MAX_LIMIT_REACHED`: there are no more records in the buffer.
const END: i32 = 12;

/// Bytes that one activity needs in a ring, with all that it may show for the first time.
const ROOM: usize = 8192;

/// The version that [`Lengths::of`] is asked for.
static VERSION: AtomicU32 = AtomicU32::new(0);
/// CUPTI does not take our clock: its times are shifted to ours.
static SHIFTED: AtomicBool = AtomicBool::new(false);
/// Activities that could not be recorded, and were not reported yet.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Records that were understood, and that were not.
static READ: AtomicUsize = AtomicUsize::new(0);
static UNLIKE: AtomicUsize = AtomicUsize::new(0);

/// The version of the library in use.
pub fn set_version(version: u32) {
    VERSION.store(version, Ordering::Release);
}

/// Whether CUPTI's times need to be shifted.
pub fn set_shifted(shifted: bool) {
    SHIFTED.store(shifted, Ordering::Release);
}

/// Whether the records are not what they are taken for.
pub fn unreadable() -> bool {
    UNLIKE.load(Ordering::Relaxed) > READ.load(Ordering::Relaxed)
}

/// Records what is in a buffer.
///
/// # Safety
/// `valid` bytes of a buffer that CUPTI has filled and gave back.
pub unsafe fn buffer(buffer: *mut u8, valid: usize) {
    let Some(lengths) = Lengths::of(VERSION.load(Ordering::Acquire)) else { return };
    device::look_at_session();
    let shift = if SHIFTED.load(Ordering::Relaxed) { shift() } else { 0 };
    let mut seen = None;
    // A buffer may have more than a ring takes at once. Our own thread may wait, and
    // the end of the program or of a context, too; but not again and again in vain.
    let mut in_time = true;
    // SAFETY: `buffer` and `valid` are those of a buffer that CUPTI gave back, which is what `each` wants.
    let lost = unsafe {
        each(buffer, valid, |bytes| match read(bytes, lengths) {
            Ok(activity) if !lengths.newer || has_name(&activity) => {
                READ.fetch_add(1, Ordering::Relaxed);
                in_time = in_time && await_room(ROOM);
                record(activity, shift, &mut seen)
            }
            Err(Unread::Other) => true,
            _ => {
                UNLIKE.fetch_add(1, Ordering::Relaxed);
                false
            }
        })
    };
    let mut dropped = 0;
    // SAFETY: room for the answer; NULL is the queue of all contexts.
    if unsafe { API.dropped(std::ptr::null_mut(), 0, &mut dropped) } != 0 {
        dropped = 0;
    }
    expected::dropped(dropped as u64);
    LOST.fetch_add(lost + dropped as u64, Ordering::Relaxed);
    report_pending();
}

/// Shows the records of a buffer, each with its bytes up to the next one, and
/// returns how many were not taken or could not be found.
///
/// # Safety
/// As [`buffer`].
unsafe fn each(buffer: *mut u8, valid: usize, mut take: impl FnMut(&[u8]) -> bool) -> u64 {
    let end = buffer as usize + valid;
    let mut record = std::ptr::null_mut();
    let mut lost = 0;
    // SAFETY: `valid` bytes of a buffer that CUPTI filled; `record` is NULL, which asks for the first one.
    let mut more = unsafe { API.next(buffer, valid, &mut record) };
    while more == 0 {
        let mut next = record;
        // SAFETY: the same buffer, not changed since; `next` holds the record that CUPTI found last.
        more = unsafe { API.next(buffer, valid, &mut next) };
        let stop = if more == 0 { next as usize } else { end };
        let inside = (buffer as usize..end).contains(&(record as usize)) && stop <= end;
        if !inside || stop <= record as usize {
            return lost + 1;
        }
        // SAFETY: inside of the buffer, as just seen.
        let bytes = unsafe { std::slice::from_raw_parts(record, stop - record as usize) };
        lost += u64::from(!take(bytes));
        record = next;
    }
    lost + u64::from(more != END && valid > 0)
}

/// Whether a record of an unknown version names something that can be read.
fn has_name(activity: &Activity) -> bool {
    activity.kernel.is_none_or(|kernel| is_text(kernel.name))
}

/// Asks the system, which does not mind if there is nothing.
fn is_text(at: *const c_char) -> bool {
    const PAGE: usize = 4096;
    let mut copy = [0u8; 512];
    let mut from = at as usize;
    for _ in 0..16 {
        // Never over the end of a page: what is there is read whole.
        let length = copy.len().min(PAGE - from % PAGE);
        let here = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: length };
        let there = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: length };
        // SAFETY: room for that many; the other side may be anything.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
        if read != length as isize {
            return false;
        }
        if copy.iter().take(length).any(|b| *b == 0) {
            return true;
        }
        from += length;
    }
    false
}

/// Records one activity. Returns whether there was room. `seen` is the queue and
/// the device of the one before.
fn record(activity: Activity, shift: i64, seen: &mut Option<(u32, u32, u32)>) -> bool {
    let id = activity.command.correlation;
    if own::take(id) || !chosen::has(id) {
        return true; // Ours, or of outside of the capture window.
    }
    let Activity { mut command, context, stream, device, peer, kernel } = activity;
    if *seen != Some((context, stream, device)) {
        *seen = Some((context, stream, device));
        device::see_device(device);
        device::see_queue(context, stream, device);
    }
    for time in [&mut command.start, &mut command.end] {
        *time = if *time == 0 { 0 } else { time.wrapping_add_signed(shift) };
    }
    command.observed = ticks();
    command.queue = device::queue_key(context, stream);
    command.device = device::device_key(device);
    if let Some(peer) = peer {
        device::see_device(peer);
        command.peer = device::device_key(peer);
    }
    let mut name = std::ptr::null();
    if let Some(kernel) = &kernel {
        command.function = function(kernel);
        if command.function == 0 {
            name = kernel.name;
        }
    }
    // SAFETY: NULL, or the NUL-terminated name of a record that CUPTI gave us.
    let name = unsafe { text(name, 0, Caps::MOST) };
    // SAFETY: plain data without gaps, and a text.
    let recorded = unsafe { record_extra(special::COMMAND, (Plain::<CommandRecord>(&command), name)) };
    // Without room it is counted as lost, and no more as in flight.
    expected::over(command.correlation);
    recorded
}

/// Name and needs of a function, hashed → its id. Names are long, and the same
/// few come again and again.
static FUNCTIONS: Table<8192> = Table::new();

/// The id of what a kernel ran.
fn function(kernel: &Kernel) -> u64 {
    if kernel.name.is_null() {
        return 0;
    }
    let Kernel { name, registers, static_shared, local } = *kernel;
    // SAFETY: the NUL-terminated name of a record that CUPTI gave us.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    // Its address may be another's after its code was unloaded.
    let add = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (chunks, rest) = bytes.as_chunks::<8>();
    let whole = chunks.iter().map(|chunk| u64::from_ne_bytes(*chunk));
    let words = [bytes.len() as u64, registers.into(), static_shared.into(), local.into()];
    let words = whole.chain(rest.iter().map(|byte| u64::from(*byte))).chain(words);
    let key = words.fold(0x51ed_270b_9f65_8a41, add);
    if let Some(known) = FUNCTIONS.get(key) {
        return known;
    }
    // SAFETY: `name` is not NULL, as tested first, and is the NUL-terminated text that was just hashed.
    let id = unsafe { device::function(name, registers, static_shared, local) };
    if id != 0 {
        FUNCTIONS.set(key, id);
    }
    id
}

/// Reports how many were dropped. Nothing is promised of what is still to come: CUPTI
/// fills several buffers at a time, and returns none that holds something
/// in flight, however old.
fn report_pending() {
    const UNCERTAIN: u64 = 1;
    let pending = PendingRecord { lost: LOST.swap(0, Ordering::Relaxed), oldest: UNCERTAIN };
    // SAFETY: plain data without gaps, and an empty text.
    if !unsafe { record_extra(special::PENDING, (Plain(&pending), 0u8)) } {
        LOST.fetch_add(pending.lost, Ordering::Relaxed);
    }
}

/// What is to be added to CUPTI's times: the narrowest of a few looks at both
/// clocks.
fn shift() -> i64 {
    let mut best = (u64::MAX, 0);
    for _ in 0..5 {
        let mut theirs = 0;
        let before = nanoseconds(libc::CLOCK_MONOTONIC);
        // SAFETY: room for the answer.
        let error = unsafe { API.timestamp(&mut theirs) };
        let width = nanoseconds(libc::CLOCK_MONOTONIC).saturating_sub(before);
        if error == 0 && width < best.0 {
            best = (width, (before + width / 2).wrapping_sub(theirs) as i64);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_are_texts() {
        assert!(is_text(c"a".as_ptr()));
        assert!(!is_text(std::ptr::null()));
        assert!(!is_text(8 as *const c_char));
        let endless = vec![b'x'; 16 * 512 + 4096];
        assert!(!is_text(endless.as_ptr().cast()));
    }
}
