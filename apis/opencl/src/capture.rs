//! Contents that are stored when the user asks for them.

use hetrace_interpose::put::{Put, Text, text};
use hetrace_interpose::ring::abi::{OBJECT_TEXTS, ObjectRecord, special};
use hetrace_interpose::{record_extra, store_blob};

use crate::generated::prelude::{Caps, P};

/// Most pieces of one program's source that are stored.
const PIECES: usize = 512;

/// Stores a program's sources as one blob named by its hash, and says which
/// program it belongs to.
///
/// # Safety
/// The arguments are those of a successful `clCreateProgramWithSource`.
pub unsafe fn source(program: P, count: u32, strings: *const P, lengths: *const u64) {
    let mut parts = [(std::ptr::null::<u8>(), 0usize); PIECES];
    let count = (count as usize).min(PIECES);
    for (i, part) in parts.iter_mut().enumerate().take(count) {
        // SAFETY: the call succeeded, so there are `count` texts, and a length
        // of 0 or none at all stands for a NUL at the end.
        unsafe {
            let at = (*strings.add(i)).cast_const().cast::<u8>();
            let length = if lengths.is_null() { 0 } else { *lengths.add(i) as usize };
            let length = if length == 0 { libc::strlen(at.cast()) } else { length };
            *part = (at, length);
        }
    }
    // SAFETY: as above.
    let hash = unsafe { store_blob(parts.get(..count).unwrap_or_default()) };
    object_text(program, "source", 0, hash);
}

/// Records the hash of what was stored for an object.
fn object_text(object: P, what: &str, index: u32, hash: u64) {
    let what = OBJECT_TEXTS.iter().position(|t| *t == what).unwrap_or(0) as u32;
    let mut hex = [0u8; 17];
    for (i, digit) in hex.iter_mut().take(16).enumerate() {
        *digit = b"0123456789abcdef"[(hash >> (60 - 4 * i) & 15) as usize];
    }
    let record = ObjectRecord { object: object as u64, what, index };
    // SAFETY: plain data and a NUL-terminated text of ours.
    unsafe {
        let text: Text = text(hex.as_ptr(), 0, Caps::MOST);
        record_extra(special::OBJECT, (Plain(&record), text));
    }
}

/// Plain data as it stands in memory.
#[derive(Clone, Copy)]
struct Plain<'d, T>(&'d T);

impl<T> Put for Plain<'_, T> {
    fn size(&self) -> usize {
        size_of::<T>()
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: room for the whole of it.
        unsafe {
            at.copy_from_nonoverlapping(std::ptr::from_ref(self.0).cast(), size_of::<T>());
            at.add(size_of::<T>())
        }
    }
}
