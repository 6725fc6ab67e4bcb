//! A quick hash for tables that are asked for each command.
//!
//! Keys are numbers that the recording gave out. A trace that is made to have many of one
//! hash is read slowly, and not wrongly.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table with this hash.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Multiplies and turns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mix(u64);

impl Mix {
    #[inline]
    fn mix(&mut self, n: u64) {
        // An odd number with bits all over: 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(26) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix((*byte).into()));
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.mix(n.into());
    }

    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.mix(n.into());
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.mix(n.into());
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table looks at the lowest bits and at the highest.
        self.0 ^ (self.0 >> 32)
    }
}
