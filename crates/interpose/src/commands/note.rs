//! Notes for the report, put together from parts without an allocation.
//!
//! A [`Note`] is its maker's alone until [`hetrace_ring::note`] hands it over. [`Once`] is one operation of one word, which says to
//! one of several threads that it is the first, and hands nothing over.

use std::sync::atomic::{AtomicU32, Ordering};

/// A note in the making.
#[derive(Debug)]
pub struct Note {
    bytes: [u8; 256],
    length: usize,
}

impl Note {
    /// An empty one.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Note {
        Note { bytes: [0; 256], length: 0 }
    }

    /// Adds a text; what finds no room is left out.
    #[must_use]
    pub fn text(mut self, text: &[u8]) -> Note {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
        self
    }

    /// Adds a number in decimal digits.
    #[must_use]
    pub fn number(self, number: u64) -> Note {
        let mut digits = [0u8; 20];
        let (mut rest, mut from) = (number, digits.len());
        for (i, place) in digits.iter_mut().enumerate().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
            from = i;
            if rest == 0 {
                break;
            }
        }
        self.text(digits.get(from..).unwrap_or_default())
    }

    /// What it says so far.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Leaves it for the report.
    pub fn leave(self) {
        crate::note(self.bytes());
    }
}

/// Up to 32 things of which each is said once.
#[derive(Debug)]
pub struct Once(AtomicU32);

impl Once {
    /// None was said.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Once {
        Once(AtomicU32::new(0))
    }

    /// Returns whether this one was not said before. Now it counts as said.
    pub fn is_first(&self, what: u32) -> bool {
        let bit = 1 << (what & 31);
        // Asked for each command: what was said before is seen without a write, which other threads would wait for.
        self.0.load(Ordering::Relaxed) & bit == 0 && self.0.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_said_once() {
        let said = Once::new();
        assert_eq!([3, 5, 3, 5, 0].map(|what| said.is_first(what)), [true, true, false, false, true]);
    }

    #[test]
    fn texts_and_numbers_stand_in_order_and_stop_at_the_end() {
        let note = Note::new().text(b"at ").number(0).text(b" of ").number(u64::MAX);
        assert_eq!(note.bytes(), b"at 0 of 18446744073709551615");
        let long = (0..40).fold(Note::new(), |n, _| n.text(b"12345678"));
        assert_eq!(long.bytes(), b"12345678".repeat(32));
    }
}
