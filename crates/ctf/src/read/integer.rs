//! An integer of a payload, and its bits in a word.

use super::pick::Number;
use crate::bits::mask;

/// An integer that always stands at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integer {
    pub bits: Bits,
    pub at: u16,
    pub slot: u16,
}

/// An integer of whole bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// Those of its word that it has.
    mask: u64,
    /// The one of its sign; 0 if it has none.
    sign: u64,
}

impl Bits {
    pub fn of(number: &Number) -> Self {
        let mask = mask(8 * number.bytes.clamp(1, 8) as u32);
        Self { mask, sign: if number.signed { mask ^ (mask >> 1) } else { 0 } }
    }

    /// How many bytes it has.
    pub fn bytes(self) -> usize {
        self.mask.count_ones() as usize / 8
    }

    /// Its value in a word, with the sign extended.
    #[inline(always)]
    pub fn of_word(self, word: u64) -> u64 {
        ((word & self.mask) ^ self.sign).wrapping_sub(self.sign)
    }
}
