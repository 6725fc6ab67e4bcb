//! The quick way past an event: what hetrace writes, and most that is like it.
//!
//! It takes whole bytes throughout: a header of plain integers, contexts of fixed
//! size, and a payload of [`Steps`]. Where anything else comes, or something is
//! wrong, it gives up, having done nothing that counts, and the long way is taken.

use super::clock;
use super::decode::State;
use super::plan::{Int, Kind, Node};
use super::steps::{Steps, whole_bytes};
use crate::bits::mask;
use crate::class::ByteOrder;

/// An event header of plain unsigned integers, none of which is a length or a
/// tag: only the id and the time are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuickHeader {
    /// Its size.
    pub bytes: usize,
    id: Part,
    clock: Option<Part>,
}

/// A field of it, as part of a word.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Where the word starts.
    byte: usize,
    order: ByteOrder,
    shift: u32,
    bits: u32,
}

impl QuickHeader {
    pub fn of(node: &Node) -> Option<Self> {
        let Kind::Struct { nodes, offsets } = &node.kind else {
            return None;
        };
        let bytes = whole_bytes(node.fixed?).filter(|&bytes| bytes > 0)?;
        if node.align != 8 {
            return None;
        }
        let (mut id, mut clock) = (None, None);
        for (node, offset) in nodes.iter().zip(offsets) {
            let Kind::Int(int) = &node.kind else {
                return None;
            };
            let part = Part::of(int, (*offset)?);
            if int.signed
                || int.slot.is_some()
                || (int.event_id && id.replace(part?).is_some())
                || (int.clock && clock.replace(part?).is_some())
            {
                return None;
            }
        }
        Some(Self { bytes, id: id?, clock })
    }

    /// The id of the header that `data` has at `at`.
    #[inline]
    pub fn id(&self, data: &[u8], at: usize) -> Option<u64> {
        self.id.get(data, at)
    }

    /// Where the clock stands after it.
    #[inline]
    pub fn clock(&self, data: &[u8], at: usize, before: u64) -> Option<u64> {
        match self.clock {
            Some(part) => Some(clock::update(before, part.get(data, at)?, part.bits)),
            None => Some(before),
        }
    }
}

impl Part {
    fn of(int: &Int, offset: u64) -> Option<Self> {
        let inside = (offset % 8) as u32;
        let above = 64u32.checked_sub(inside + int.bits)?;
        Some(Self {
            byte: usize::try_from(offset / 8).ok()?,
            order: int.order,
            shift: match int.order {
                ByteOrder::Little => inside,
                ByteOrder::Big => above,
            },
            bits: int.bits,
        })
    }

    /// Its value; none where no whole word is there.
    #[inline]
    fn get(self, data: &[u8], at: usize) -> Option<u64> {
        let word = *data.get(at + self.byte..)?.first_chunk()?;
        let word = match self.order {
            ByteOrder::Little => u64::from_le_bytes(word),
            ByteOrder::Big => u64::from_be_bytes(word),
        };
        Some((word >> self.shift) & mask(self.bits))
    }
}

/// What follows the header.
#[derive(Debug)]
pub(super) struct QuickBody {
    /// Where its context starts, behind the stream's.
    pub context: usize,
    /// Where the payload starts.
    pub fields: usize,
    payload: Steps,
}

impl QuickBody {
    pub fn of(common: Option<&Node>, context: Option<&Node>, fields: &Node) -> Option<Self> {
        let common = fixed(common)?;
        Some(Self {
            context: common,
            fields: common.checked_add(fixed(context)?)?,
            payload: Steps::of(fields)?,
        })
    }

    /// Where the payload that starts at `fields` ends.
    #[inline]
    pub fn end(&self, data: &[u8], fields: usize, state: &State) -> Option<usize> {
        self.payload.run(data, fields, state)
    }
}

/// The bytes of a context; 0 if there is none.
fn fixed(node: Option<&Node>) -> Option<usize> {
    match node {
        None => Some(0),
        Some(node) if node.active || node.align > 8 => None,
        Some(node) => whole_bytes(node.fixed?),
    }
}
