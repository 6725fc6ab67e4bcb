//! Maps whose keys are numbers of the kernel's: threads, CPUs, system calls.
//!
//! Several are asked for each record, and the standard hash, which withstands keys chosen to collide, is most of
//! what that costs. The kernel gives these numbers out in turn.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by number.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;
/// A set of numbers.
pub type NumberSet<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Multiplies by an odd number without a pattern, so that each bit of a key reaches the upper half.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn neighbours_are_apart() {
        let hash = |n: u32| BuildHasherDefault::<NumberHasher>::default().hash_one(n);
        // What a map of 1,024 places looks at: the lower bits, and seven at the top.
        let places = |of: fn(u64) -> u64| (0..1024).map(|n| of(hash(n))).collect::<NumberSet<u64>>().len();
        assert!(places(|hash| hash % 1024) > 500, "{}", places(|hash| hash % 1024));
        assert_eq!(places(|hash| hash >> 57), 128);
    }

    #[test]
    fn parts_of_a_key_count_in_their_order() {
        let hash = |key: (u32, u64)| BuildHasherDefault::<NumberHasher>::default().hash_one(key);
        assert_ne!(hash((1, 2)), hash((2, 1)));
    }
}
