//! Ids of stacks and modules: hashes of 64 bits, the same in all processes.

/// Fractional digits of pi; others than where programs make ids, so that these are never mistaken for each other.
const SEED: u64 = 0xa409_3822_299f_31d0;
const OTHER: u64 = 0x082e_fa98_ec4e_6c89;

/// Mixes two words so that each bit of both changes about half of the result's.
pub fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one ^ SEED) * u128::from(two ^ OTHER);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a text.
pub fn text(text: &str) -> u64 {
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    text.as_bytes().chunks(8).fold(text.len() as u64, |hash, bytes| mix(hash.rotate_left(17), word(bytes)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_differs_has_another_hash() {
        let mut seen = HashSet::new();
        for length in 0..100 {
            assert!(seen.insert(text(&"a".repeat(length))));
            assert!(seen.insert(text(&("b".to_owned() + &"a".repeat(length)))));
        }
        assert_ne!(mix(1, 2), mix(2, 1));
    }
}
