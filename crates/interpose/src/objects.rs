//! What only the tracer of an API can show of its objects, beside its calls: sources, build logs, properties.
//!
//! Each becomes a record, which the drainer turns into an event `object:…` of the trace; contents that are long become files,
//! named by their hash, each once.

use hetrace_ring::abi::{OBJECT_PARTS, ObjectRecord, special};
use hetrace_ring::record::{HEAD, MAX_RECORD};

use crate::put::Put;
use crate::{record_extra, session, store_blob, thread_id};

/// Longest text or value that stands in a record; longer ones become files.
pub const INLINE: usize = 3800;
/// Longest of the short texts beside it.
const SHORT: usize = 160;

const _: () = assert!(HEAD + size_of::<ObjectRecord>() + INLINE + SHORT <= MAX_RECORD);

/// Whether the user asked for this; see [`hetrace_ring::abi::option`].
#[inline]
pub fn wanted(option: u32) -> bool {
    session().is_some_and(|s| s.option(option))
}

/// The call on whose behalf something is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// Counter value of its entry.
    pub time: u64,
    /// The thread that makes it.
    pub thread: u32,
}

impl Cause {
    /// A call of this thread.
    pub fn here(time: u64) -> Cause {
        // SAFETY: no preconditions.
        let ask = || unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        Cause { time, thread: Some(thread_id()).filter(|t| *t != 0).unwrap_or_else(ask) }
    }
}

/// Records an object with its parts, which fit as `INLINE` says.
pub fn record_object(cause: Cause, record: ObjectRecord, parts: &[&[u8]]) {
    let mut record = ObjectRecord { cause: cause.time, cause_tid: cause.thread, ..record };
    for (length, part) in record.parts.iter_mut().zip(parts) {
        *length = part.len().min(MAX_RECORD) as u16;
    }
    // SAFETY: plain data and live slices.
    unsafe { record_extra(special::OBJECT, Body { record: &record, parts }) };
}

/// A content as it goes into a record: in it if it is short, else as the name
/// of the file that has it.
pub fn inline_or_stored(content: &[u8], record: &mut ObjectRecord) -> usize {
    record.length = content.len() as u64;
    if content.len() <= INLINE {
        return content.len();
    }
    record.hash = store(content);
    record.stored = record.length;
    0
}

/// Stores a content as a file. Returns its name.
pub fn store(content: &[u8]) -> u64 {
    // SAFETY: a live slice.
    unsafe { store_blob(&[(content.as_ptr(), content.len())]) }
}

#[derive(Clone, Copy)]
struct Body<'d> {
    record: &'d ObjectRecord,
    parts: &'d [&'d [u8]],
}

impl Body<'_> {
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().take(OBJECT_PARTS).map(|p| p.get(..MAX_RECORD).unwrap_or(p))
    }
}

impl Put for Body<'_> {
    fn size(&self) -> usize {
        size_of::<ObjectRecord>() + self.parts().map(<[u8]>::len).sum::<usize>()
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        let size = size_of::<ObjectRecord>();
        // SAFETY: room for the record and its parts.
        unsafe {
            at.copy_from_nonoverlapping(std::ptr::from_ref(self.record).cast(), size);
            self.parts().fold(at.add(size), |at, part| {
                at.copy_from_nonoverlapping(part.as_ptr(), part.len());
                at.add(part.len())
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_record_and_its_parts() {
        let record = ObjectRecord { object: 0x1122_3344, ..ObjectRecord::default() };
        let body = Body { record: &record, parts: &[b"name", b"", b"value"] };
        assert_eq!(body.size(), size_of::<ObjectRecord>() + 9);
        let mut out = vec![0xee; body.size() + 1];
        // SAFETY: room for one byte more than it has.
        let end = unsafe { body.put(out.as_mut_ptr()) };
        assert_eq!(end as usize - out.as_ptr() as usize, body.size());
        assert_eq!(out.get(size_of::<ObjectRecord>()..), Some(&b"namevalue\xee"[..]));
    }

    #[test]
    fn no_body_has_more_parts_than_a_record_has_lengths() {
        let parts = [&b"x"[..]; OBJECT_PARTS + 3];
        let body = Body { record: &ObjectRecord::default(), parts: &parts };
        assert_eq!(body.size(), size_of::<ObjectRecord>() + OBJECT_PARTS);
    }

    #[test]
    fn short_contents_stand_in_the_record() {
        let mut record = ObjectRecord::default();
        assert_eq!(inline_or_stored(&[1; INLINE], &mut record), INLINE);
        assert_eq!((record.length, record.stored, record.hash), (INLINE as u64, 0, 0));
        // Without a session there is no file; the length is said all the same.
        assert_eq!(inline_or_stored(&[1; INLINE + 1], &mut record), 0);
        assert_eq!(record.length, INLINE as u64 + 1);
    }
}
