//! Short texts that programs leave for the report.
//!
//! ```text
//!   │ u16 length, and whether it is whole │ u32 check │ text │ u16 length … │ …
//! ```
//! * A place is taken by one exchange of `used`, so it is the writer's alone.
//! * The byte with the bit that says that a note is whole is stored last, with *Release*, and loaded with *Acquire*: a
//!   reader stops at a note that is not finished, and of others it finds all.
//! * The check is of the text: memory that a program has overwritten holds no notes.
//!
//! `tests/loom_notes.rs` explores the interleavings.

use crate::abi::Notes;
use crate::primitive::Ordering;

/// A byte of the memory in which notes stand.
pub type Byte = crate::primitive::AtomicU8;

/// Bytes in front of a text.
const HEAD: usize = 6;
/// Longest text, in bytes; what is longer is cut.
const LONGEST: usize = 500;
/// In the second byte of a note: it is whole. The rest of that byte is the length's upper part.
const WHOLE: u8 = 0x80;

/// Leaves a short text for the report (`untraced extension clFooXYZ`). `place` is used for these notes alone.
pub fn note(notes: &Notes, place: &[Byte], text: &[u8]) {
    let text = &text[..text.len().min(LONGEST)];
    let (room, need) = (place.len() as u32, (text.len() + HEAD) as u32);
    let end = |used: u32| used.checked_add(need).filter(|end| *end <= room);
    let taken = notes.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
    let Some(own) = taken.ok().and_then(|at| place.get(at as usize..(at + need) as usize)) else {
        notes.lost.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let [low, high] = (text.len() as u16).to_le_bytes();
    let body = check(text).to_le_bytes();
    let bytes = [low].into_iter().chain([0]).chain(body).chain(text.iter().copied());
    // Zeros stand there before, so the second byte says that it is not whole, and is not touched yet.
    for (place, byte) in own.iter().zip(bytes).enumerate().filter(|(i, _)| *i != 1).map(|(_, both)| both) {
        place.store(byte, Ordering::Relaxed);
    }
    if let Some(last) = own.get(1) {
        // Pairs with the Acquire load in `read`: the rest is there.
        last.store(high | WHOLE, Ordering::Release);
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
pub fn read(notes: &Notes, place: &[Byte]) -> Found {
    let used = notes.used.load(Ordering::Relaxed) as usize;
    let mut found = Found { damaged: used > place.len(), ..Found::default() };
    let mut rest = place.get(..used.min(place.len())).unwrap_or_default();
    while let Some((head, behind)) = rest.split_first_chunk::<HEAD>() {
        let high = match head[1].load(Ordering::Acquire) {
            0 => break,
            high => high,
        };
        let [low, _, check_bytes @ ..] = head.each_ref().map(|byte| byte.load(Ordering::Relaxed));
        let length = usize::from(u16::from_le_bytes([low, high & !WHOLE]));
        let text = (high & WHOLE != 0).then(|| behind.split_at_checked(length)).flatten();
        let text = text.map(|(text, next)| (text.iter().map(|b| b.load(Ordering::Relaxed)), next));
        let text = text.map(|(text, next)| (text.collect::<Vec<u8>>(), next));
        match text.filter(|(text, _)| check(text) == u32::from_le_bytes(check_bytes)) {
            Some((text, next)) => {
                found.texts.push(String::from_utf8_lossy(&text).into_owned());
                rest = next;
            }
            None => {
                found.damaged = true;
                break;
            }
        }
    }
    if !found.damaged {
        found.lost = notes.lost.load(Ordering::Relaxed);
    }
    found
}

/// Forgets all notes. One that is being written meanwhile is damaged, no more.
pub fn forget(notes: &Notes, place: &[Byte]) {
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
    use super::*;
    use crate::primitive::AtomicU32;

    #[test]
    fn notes_are_read_until_what_is_noise() {
        let notes = Notes { used: AtomicU32::new(0), lost: AtomicU32::new(0) };
        let place = [const { Byte::new(0) }; 64];
        let leave = |text: &[u8]| note(&notes, &place, text);
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

    #[test]
    fn one_that_is_not_whole_is_not_there_yet() {
        let notes = Notes { used: AtomicU32::new(0), lost: AtomicU32::new(0) };
        let place: Vec<Byte> = (0..2048).map(|_| Byte::new(0)).collect();
        let longest = vec![b'x'; LONGEST + 1];
        note(&notes, &place, &longest);
        note(&notes, &place, &longest[..256]);
        let lengths = |found: Found| found.texts.iter().map(String::len).collect::<Vec<_>>();
        assert_eq!(lengths(read(&notes, &place)), [LONGEST, 256]);
        let second = &place[LONGEST + HEAD + 1];
        let whole = second.swap(0, Ordering::Relaxed);
        let found = read(&notes, &place);
        assert!(!found.damaged && lengths(found) == [LONGEST]);
        second.store(whole & !WHOLE, Ordering::Relaxed);
        assert!(read(&notes, &place).damaged, "nobody writes that");
    }
}
