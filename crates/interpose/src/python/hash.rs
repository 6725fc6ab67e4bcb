//! Ids of stacks: hashes of 64 bits. Equal stacks have equal ids in all threads, processes and APIs; that two of the
//! thousands of stacks of a program have one is less likely than one in 10^11.

/// Fractional digits of pi.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const OTHER: u64 = 0x1319_8a2e_0370_7344;

/// Mixes two words so that each bit of both changes about half of the result's.
pub(super) fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one ^ SEED) * u128::from(two ^ OTHER);
    product as u64 ^ (product >> 64) as u64
}

/// Adds bytes to a hash.
pub(super) fn add(hash: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(hash, bytes.len() as u64);
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        let (one, two) = (word(&pair[..8]), word(&pair[8..]));
        hash = mix(hash ^ one, two.rotate_left(32) ^ hash.rotate_left(17));
    }
    let (words, last) = rest.as_chunks::<8>();
    for eight in words {
        hash = mix(hash, word(eight));
    }
    if last.is_empty() { hash } else { mix(hash, word(last)) }
}

/// At most eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(eight) => u64::from_le_bytes(eight),
        Err(_) => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_differs_has_another_hash() {
        let text: Vec<u8> = (0..200).collect();
        let mut seen = HashSet::new();
        for length in 0..text.len() {
            assert!(seen.insert(add(1, &text[..length])));
            for at in 0..length {
                let mut other = text[..length].to_vec();
                other[at] ^= 0x10;
                assert!(seen.insert(add(1, &other)), "{length} {at}");
            }
        }
        assert_ne!(add(1, b"ab"), add(2, b"ab"));
        assert_ne!(add(add(1, b"a"), b"b"), add(1, b"ab"));
    }
}
