//! What was read of a stream that grows, and is to be shown next.

use std::collections::VecDeque;

/// Packets of a stream that were read: of a series, those of each part by themselves, as numbers of packets and of
/// discarded events begin anew there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    pub(super) segments: VecDeque<(u64, Vec<u8>)>,
}

impl Pending {
    /// What follows is of another part, whose first packet has this number if none is missing.
    pub(super) fn begin(&mut self, first: u64) {
        self.segments.push_back((first, Vec::new()));
    }

    pub(super) fn last(&mut self) -> &mut Vec<u8> {
        if self.segments.is_empty() {
            self.begin(0);
        }
        let at = self.segments.len() - 1;
        &mut self.segments[at].1
    }

    /// Returns how many bytes they are.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all bytes.
    pub fn concat(&self) -> Vec<u8> {
        self.segments.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    }

    /// Forgets the first bytes.
    pub fn forget(&mut self, mut bytes: usize) {
        while let Some((_, first)) = self.segments.front_mut() {
            // One that ends there stays, empty: so the next is known as another.
            if bytes <= first.len() {
                first.drain(..bytes);
                return;
            }
            bytes -= first.len();
            self.segments.pop_front();
        }
    }
}
