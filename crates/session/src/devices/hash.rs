//! Maps by numbers that programs give: looked up a few times for each command, where
//! the standard hash was a fifth of all work.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number.
pub type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// One multiplication, both halves of whose result are used: handles are addresses
/// and ids count up, so neither end of them is enough.
#[derive(Debug, Default, Clone, Copy)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn write_u64(&mut self, number: u64) {
        let wide = u128::from(self.0 ^ number ^ 0x51ed_270b_9f65_8a41) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = wide as u64 ^ (wide >> 64) as u64;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_look_alike_are_spread() {
        let hash = |n: u64| {
            let mut mix = Mix::default();
            mix.write_u64(n);
            mix.finish()
        };
        // A table takes its place from the low bits, and compares the high ones.
        for step in [1, 8, 4096, 1 << 32, 1 << 40] {
            let places: std::collections::HashSet<u64> =
                (1..=4096).map(|i| hash(i * step) & 0xffff).collect();
            assert!(places.len() > 3500, "{step}: {}", places.len());
            let tops: std::collections::HashSet<u64> = (1..=4096).map(|i| hash(i * step) >> 57).collect();
            assert!(tops.len() > 100, "{step}: {}", tops.len());
        }
    }
}
