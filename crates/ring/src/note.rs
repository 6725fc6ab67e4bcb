//! Short texts that programs leave for the report.
//!
//! ```text
//!   │ u16 length │ u32 check │ text │ u16 length │ u32 check │ text │ …
//! ```
//! The length is stored last, so a reader stops at a note that is not finished. The check is of the text: memory that a
//! program has overwritten holds no notes.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::abi::Notes;

/// Bytes in front of a text.
const HEAD: usize = 6;
/// Longest text, in bytes; what is longer is cut.
const LONGEST: usize = 500;
/// More bytes than are asked for at a time.
const ASKED: usize = 1 << 20;

/// Leaves a short text for the report (`untraced extension clFooXYZ`).
///
/// # Safety
/// `room` bytes from `place` on are mapped writable for as long as this runs, and used for these notes alone.
pub unsafe fn note(notes: &Notes, place: *mut u8, room: usize, text: &[u8]) {
    let text = &text[..text.len().min(LONGEST)];
    let need = (text.len() + HEAD) as u32;
    let at = notes.used.fetch_add(need, Ordering::Relaxed);
    if at.saturating_add(need) > room as u32 {
        notes.used.fetch_sub(need, Ordering::Relaxed);
        notes.lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: `at .. at + need` lies in the `room` bytes of this function's contract, and the addition above made it this
    // caller's alone.
    unsafe {
        let place = place.add(at as usize);
        place.add(HEAD).copy_from_nonoverlapping(text.as_ptr(), text.len());
        place.add(2).cast::<u32>().write_unaligned(check(text).to_le());
        std::sync::atomic::fence(Ordering::Release);
        place.cast::<u16>().write_unaligned((text.len() as u16).to_le());
    }
}

/// Notes that were read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Found {
    /// The texts.
    pub texts: Vec<String>,
    /// Notes that found no room.
    pub lost: u32,
    /// What is there was overwritten: there may have been more.
    pub damaged: bool,
}

/// Reads notes that programs may still be writing.
pub fn read(notes: &Notes, place: &[AtomicU8]) -> Found {
    let used = notes.used.load(Ordering::Acquire) as usize;
    let bytes: Vec<u8> = place.iter().take(used).map(|byte| byte.load(Ordering::Relaxed)).collect();
    // Who finds no room has asked for more, for a moment.
    let mut found = Found { damaged: used > place.len() + ASKED, ..Found::default() };
    let mut rest = bytes.as_slice();
    while let Some(([a, b, c, d, e, f], behind)) = rest.split_first_chunk::<HEAD>() {
        let length = usize::from(u16::from_le_bytes([*a, *b]));
        if length == 0 {
            break;
        }
        let Some((text, next)) = behind.split_at_checked(length) else {
            found.damaged = true;
            break;
        };
        if check(text) != u32::from_le_bytes([*c, *d, *e, *f]) {
            found.damaged = true;
            break;
        }
        found.texts.push(String::from_utf8_lossy(text).into_owned());
        rest = next;
    }
    if !found.damaged {
        found.lost = notes.lost.load(Ordering::Relaxed);
    }
    found
}

/// Forgets all notes. One that is being written meanwhile is damaged, no more.
pub fn forget(notes: &Notes, place: &[AtomicU8]) {
    place.iter().for_each(|byte| byte.store(0, Ordering::Relaxed));
    notes.lost.store(0, Ordering::Relaxed);
    notes.used.store(0, Ordering::Relaxed);
}

/// FNV-1a of 32 bits.
fn check(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn notes_are_read_until_what_is_noise() {
        let notes = Notes { used: AtomicU32::new(0), lost: AtomicU32::new(0) };
        let place = [const { AtomicU8::new(0) }; 64];
        // SAFETY: the bytes of `place`, which are atomics and so may be written behind a shared reference.
        let leave =
            |text: &[u8]| unsafe { note(&notes, place.as_ptr().cast_mut().cast(), place.len(), text) };
        leave(b"the first");
        leave(b"another");
        leave(&[b'x'; 60]);
        let both = ["the first".to_owned(), "another".to_owned()];
        assert_eq!(read(&notes, &place), Found { texts: both.to_vec(), lost: 1, damaged: false });
        place[15 + HEAD].store(0xa5, Ordering::Relaxed);
        assert_eq!(read(&notes, &place), Found { texts: both[..1].to_vec(), lost: 0, damaged: true });
        notes.used.store(u32::MAX, Ordering::Relaxed);
        leave(b"finds no room, and harms nobody");
        assert!(read(&notes, &place).damaged);
        forget(&notes, &place);
        assert_eq!(read(&notes, &place), Found::default());
    }
}
