//! A quick hash for tables that are asked for each command.
//!
//! Keys are numbers that the recording gave out. A trace that is made to have many of one
//! hash is read slowly, and not wrongly.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A table with this hash.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Values by key, each of which keeps its place: who knows that need not look it up.
#[derive(Clone, Debug)]
pub struct Places<K, V> {
    by_key: QuickMap<K, usize>,
    all: Vec<(K, V)>,
}

impl<K, V> Default for Places<K, V> {
    fn default() -> Self {
        Self { by_key: QuickMap::default(), all: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Places<K, V> {
    /// Returns the place of a key, which has one from then on.
    #[inline]
    pub fn place(&mut self, key: K) -> usize {
        match self.by_key.get(&key) {
            Some(place) => *place,
            None => self.make(key),
        }
    }

    #[cold]
    fn make(&mut self, key: K) -> usize {
        let place = self.all.len();
        self.by_key.insert(key, place);
        self.all.push((key, V::default()));
        place
    }

    /// Returns what is at a place.
    #[inline]
    pub fn at(&mut self, place: usize) -> Option<&mut V> {
        self.all.get_mut(place).map(|(_, value)| value)
    }

    /// Returns the value of a key, which has one from then on.
    pub fn entry(&mut self, key: K) -> &mut V {
        let place = self.place(key);
        &mut self.all[place].1
    }

    /// Returns all of them, in the order of their first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.all.iter().map(|(key, value)| (key, value))
    }

    /// Returns the keys, in the same order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.all.iter().map(|(key, _)| key)
    }
}

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
