//! Hashes of 64 bits, by which stacks and the like are known: equal ones in all threads, processes and APIs. That two of the
//! thousands of stacks of a program have one is less likely than one in 10^11.

/// Fractional digits of pi.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const OTHER: u64 = 0x1319_8a2e_0370_7344;

/// Mixes two words so that each bit of both changes about half of the result's.
#[inline(always)]
pub(crate) fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one ^ SEED) * u128::from(two ^ OTHER);
    product as u64 ^ (product >> 64) as u64
}

/// Adds bytes to a hash; the first to 0.
#[inline(always)]
pub fn add(hash: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(hash, bytes.len() as u64);
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        let ([one, two], _) = pair.as_chunks::<8>() else { continue };
        hash = mix(hash ^ u64::from_le_bytes(*one), u64::from_le_bytes(*two) ^ hash.rotate_left(17));
    }
    if rest.is_empty() {
        return hash;
    }
    let (first, last) = ends(rest);
    mix(hash ^ first, last ^ hash.rotate_left(17))
}

/// At most 16 bytes in two words; some bytes may be in both.
#[inline(always)]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
    }
    let at = |place: usize| bytes.get(place).map_or(0, |byte| u64::from(*byte));
    (at(0) | at(1) << 8, at(2))
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
