//! Integers of 1 to 64 bits at any bit of a byte slice, in either byte order.
//!
//! ```text
//! byte          0                 1
//! little   [ 7 6 5 4 3 2 1 0 ][ F E D C B A 9 8 ]    stream bit n is value bit n
//! big      [ 0 1 2 3 4 5 6 7 ][ 8 9 A B C D E F ]    stream bit 0 is the value's top bit
//! ```

use crate::class::ByteOrder;

/// Returns the value with its lowest `bits` bits set.
#[inline]
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Extends the sign of a number of `bits` bits.
#[inline]
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    ((value << unused) as i64) >> unused
}

/// Returns the lowest `bits` (1 to 64) bits in the reverse order.
pub fn reverse(value: u64, bits: u32) -> u64 {
    (value & mask(bits)).reverse_bits() >> (64 - bits.clamp(1, 64))
}

/// Returns the next position that is a multiple of `align`, a power of two; none on overflow.
pub fn align_up(pos: u64, align: u32) -> Option<u64> {
    let low = u64::from(align.max(1)) - 1;
    pos.checked_add(low).map(|p| p & !low)
}

/// Returns the little-endian word that starts at a byte; none where no whole one is there.
#[inline(always)]
pub fn word(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// Reads `bits` (1 to 64) bits from bit `pos` on; none past the end of `data`.
#[inline]
pub fn get(data: &[u8], pos: u64, bits: u32, order: ByteOrder) -> Option<u64> {
    let first = usize::try_from(pos / 8).ok()?;
    let shift = (pos % 8) as u32;
    // Nearly always a whole word is there, which costs less than its part.
    if shift + bits <= 64
        && let Some(&word) = data.get(first..).and_then(<[u8]>::first_chunk)
    {
        return Some(part(word, shift, bits, order));
    }
    get_at_end(data, first, shift, bits, order)
}

/// Returns the value of `bits` bits from bit `shift` of a word on.
#[inline]
fn part(word: [u8; 8], shift: u32, bits: u32, order: ByteOrder) -> u64 {
    match order {
        ByteOrder::Little => (u64::from_le_bytes(word) >> shift) & mask(bits),
        // The value's top bit stands `shift` bits below the word's.
        ByteOrder::Big => (u64::from_be_bytes(word) << shift) >> (64 - bits.clamp(1, 64)),
    }
}

/// [`get`] near the end of the data, or of more bytes than a word has.
fn get_at_end(data: &[u8], first: usize, shift: u32, bits: u32, order: ByteOrder) -> Option<u64> {
    let count = (shift + bits).div_ceil(8);
    let bytes = data.get(first..first.checked_add(count as usize)?)?;
    if count <= 8 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        return Some(part(word, shift, bits, order));
    }
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    Some(match order {
        ByteOrder::Little => (u128::from_le_bytes(word) >> shift) as u64 & mask(bits),
        ByteOrder::Big => ((u128::from_be_bytes(word) << shift) >> (128 - bits.clamp(1, 64))) as u64,
    })
}

/// Returns how many bytes stand before the first NUL; none if there is none.
#[inline]
pub fn find_nul(data: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::MAX / 255;
    const HIGH: u64 = LOW << 7;
    let (words, rest) = data.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        // The lowest bit of `nul` is the top bit of the first byte that is 0.
        let word = u64::from_le_bytes(*word);
        let nul = word.wrapping_sub(LOW) & !word & HIGH;
        if nul != 0 {
            return Some(index * 8 + nul.trailing_zeros() as usize / 8);
        }
    }
    let last = rest.iter().position(|&b| b == 0)?;
    Some(words.len() * 8 + last)
}

/// Writes the low `bits` (1 to 64) bits of `value` from bit `pos` on, which
/// must lie inside `data` and be zero there; false, and nothing written, if it does not.
pub fn put(data: &mut [u8], pos: u64, bits: u32, order: ByteOrder, value: u64) -> bool {
    let bits = bits.clamp(1, 64);
    let value = u128::from(value & mask(bits));
    let shift = (pos % 8) as u32;
    let count = (shift + bits).div_ceil(8) as usize;
    let Ok(first) = usize::try_from(pos / 8) else {
        return false;
    };
    let Some(bytes) = first.checked_add(count).and_then(|end| data.get_mut(first..end)) else {
        return false;
    };
    let word = match order {
        ByteOrder::Little => (value << shift).to_le_bytes(),
        ByteOrder::Big => (value << (128 - bits - shift)).to_be_bytes(),
    };
    for (byte, new) in bytes.iter_mut().zip(word) {
        *byte |= new;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn put_then_get(value: u64, pos in 0u64..70, bits in 1u32..=64, big: bool) {
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let mut data = [0; 24];
            prop_assert!(put(&mut data, pos, bits, order, value));
            prop_assert_eq!(get(&data, pos, bits, order), Some(value & mask(bits)));
            // The same where the data end with the value.
            let end = (pos + u64::from(bits)).div_ceil(8) as usize;
            prop_assert_eq!(get(&data[..end], pos, bits, order), Some(value & mask(bits)));
            prop_assert_eq!(get(&data[..end - 1], pos, bits, order), None);
            // Nothing outside was touched.
            let ones: u32 = data.iter().map(|b| b.count_ones()).sum();
            prop_assert_eq!(ones, (value & mask(bits)).count_ones());
        }
    }

    proptest! {
        #[test]
        fn finds_the_first_nul(data in prop::collection::vec(prop_oneof![Just(0u8), 0u8..3, any::<u8>()], 0..40)) {
            prop_assert_eq!(find_nul(&data), data.iter().position(|&b| b == 0));
            let data: Vec<u8> = data.into_iter().map(|b| b.max(1)).chain([0]).collect();
            prop_assert_eq!(find_nul(&data), Some(data.len() - 1));
        }
    }

    #[test]
    fn order_of_bits() {
        // 3 bits 101, then 5 bits 00001.
        let little = [0b0000_1101];
        assert_eq!(get(&little, 0, 3, ByteOrder::Little), Some(0b101));
        assert_eq!(get(&little, 3, 5, ByteOrder::Little), Some(1));
        let big = [0b1010_0001];
        assert_eq!(get(&big, 0, 3, ByteOrder::Big), Some(0b101));
        assert_eq!(get(&big, 3, 5, ByteOrder::Big), Some(1));
        assert_eq!(get(&big, 3, 6, ByteOrder::Big), None);
    }

    #[test]
    fn extends_signs() {
        assert_eq!(sign_extend(0b111, 3), -1);
        assert_eq!(sign_extend(0b011, 3), 3);
        assert_eq!(sign_extend(u64::MAX, 64), -1);
    }
}
