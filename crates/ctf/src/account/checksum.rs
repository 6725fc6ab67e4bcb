//! The checksum of accounts: 64 bits of XXH64 with seed 0, which `xxhsum -H64` prints, too.
//!
//! It finds damage, not intent: who changes a trace can change its account.

use std::fmt;
use std::hash::Hasher as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::XxHash64;

/// A checksum; as text 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checksum(pub u64);

impl Checksum {
    /// That of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(XxHash64::oneshot(0, bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// The checksum of bytes that come in pieces.
#[derive(Clone)]
pub struct Hasher(XxHash64);

impl Default for Hasher {
    fn default() -> Self {
        Self(XxHash64::with_seed(0))
    }
}

impl Hasher {
    /// The next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// That of all bytes so far.
    pub fn checksum(&self) -> Checksum {
        Checksum(self.0.finish())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hasher").field(&self.checksum()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_xxhsum_prints() {
        assert_eq!(Checksum::of(b"").to_string(), "ef46db3751d8e999");
        assert_eq!(Checksum::of(b"abc").to_string(), "44bc2cf5ad770999");
        let mut hasher = Hasher::default();
        b"abc".chunks(1).for_each(|piece| hasher.update(piece));
        assert_eq!(hasher.checksum(), Checksum::of(b"abc"));
    }
}
