//! Where bytes are.

use super::kinds::KindId;

/// Bytes in a row, in an object or at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Span {
    /// The object; none at an address.
    pub object: Option<(KindId, u64)>,
    /// Where it begins.
    pub start: u64,
    pub bytes: u64,
}

impl Span {
    /// The first byte behind it.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }

    /// Whether both have a byte in common.
    pub fn meets(&self, other: &Span) -> bool {
        self.object == other.object && self.start < other.end() && other.start < self.end()
    }

    /// Whether it has all bytes of the other.
    pub fn covers(&self, other: &Span) -> bool {
        self.object == other.object && self.start <= other.start && other.end() <= self.end()
    }

    /// Whether it begins where the other ends.
    pub fn follows(&self, other: &Span) -> bool {
        self.object == other.object && self.start == other.end()
    }
}
