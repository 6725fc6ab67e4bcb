//! Passing over fields: the part that every event goes through.

use std::cell::Cell;

use super::clock;
use super::error::DecodeError;
use super::plan::{Int, Kind, Node, Optional, Variant};
use crate::bits::{align_up, find_nul, get, reverse, sign_extend};

/// How many elements without a bit one event may have: a length field could
/// claim 2^64 of them, and nothing in the bytes would ever contradict it.
const MAX_EMPTY: u32 = 1 << 16;

/// What decoding leaves behind. Cells, because looking at an event again
/// writes the same lengths and tags once more.
#[derive(Debug, Default)]
pub(super) struct State {
    pub slots: Vec<Cell<Option<u64>>>,
    pub clock: Cell<u64>,
    pub event_id: Cell<Option<u64>>,
}

/// A position in the bytes of a packet.
pub(super) struct Decoder<'t, 'e> {
    /// The packet, from its first byte.
    pub data: &'t [u8],
    /// Bits from there.
    pub pos: u64,
    /// The end of the content in bits.
    pub end: u64,
    pub state: &'e State,
    /// Whether this is the first time, when clocks go on.
    pub live: bool,
    pub empty: u32,
}

impl<'t> Decoder<'t, '_> {
    pub fn align(&mut self, align: u32) -> Result<(), DecodeError> {
        match align_up(self.pos, align) {
            // An empty field may stand at the very end, with its padding missing.
            Some(pos) => self.pos = pos,
            None => return Err(self.past_end(u64::MAX)),
        }
        Ok(())
    }

    pub fn past_end(&self, need: u64) -> DecodeError {
        DecodeError::PastEnd { at: self.pos, need, end: self.end }
    }

    /// Goes over `bits` bits; gives where they start.
    pub fn bump(&mut self, bits: u64) -> Result<u64, DecodeError> {
        let start = self.pos;
        match start.checked_add(bits) {
            Some(next) if next <= self.end || bits == 0 => self.pos = next,
            _ => return Err(self.past_end(bits)),
        }
        Ok(start)
    }

    pub fn raw(&mut self, bits: u32, order: crate::class::ByteOrder) -> Result<u64, DecodeError> {
        let start = self.bump(u64::from(bits))?;
        get(self.data, start, bits, order).ok_or(DecodeError::PastEnd {
            at: start,
            need: u64::from(bits),
            end: self.end,
        })
    }

    /// Returns an integer's bits, its sign extended to all 64.
    #[inline]
    pub fn int(&mut self, int: &Int) -> Result<u64, DecodeError> {
        let mut raw = self.raw(int.bits, int.order)?;
        if int.reversed {
            raw = reverse(raw, int.bits);
        }
        let value = if int.signed { sign_extend(raw, int.bits) as u64 } else { raw };
        self.leave(int, value, raw, int.bits);
        Ok(value)
    }

    /// Returns an integer in LEB128.
    pub fn leb(&mut self, int: &Int) -> Result<u64, DecodeError> {
        let at = self.pos;
        let (mut value, mut bits) = (0, 0);
        loop {
            let byte = self.raw(8, crate::class::ByteOrder::Little)?;
            let part = byte & 0x7f;
            value |= part << bits;
            bits += 7;
            if bits == 70 {
                // Of the tenth byte there is room for one bit.
                let fits = part <= 1 && !int.signed || int.signed && (part == 0 || part == 0x7f);
                if !fits || byte > 0x7f {
                    return Err(DecodeError::TooLong { at });
                }
            }
            if byte <= 0x7f {
                break;
            }
        }
        let raw = value;
        if int.signed {
            value = sign_extend(value, bits) as u64;
        }
        self.leave(int, value, raw, bits);
        Ok(value)
    }

    /// Leaves behind what an integer of so many bits means to others.
    #[inline]
    fn leave(&self, int: &Int, value: u64, raw: u64, bits: u32) {
        if let Some(slot) = int.slot {
            self.set(slot, Some(value));
        }
        if self.live {
            if int.clock {
                self.state.clock.set(clock::update(self.state.clock.get(), raw, bits));
            }
            if int.event_id {
                self.state.event_id.set(Some(value));
            }
        }
    }

    fn set(&self, slot: u32, value: Option<u64>) {
        if let Some(cell) = self.state.slots.get(slot as usize) {
            cell.set(value);
        }
    }

    pub fn slot(&self, slot: u32) -> Result<u64, DecodeError> {
        let value = self.state.slots.get(slot as usize).and_then(Cell::get);
        value.ok_or(DecodeError::Unset { at: self.pos })
    }

    /// Returns a string ended by a zero of `unit` bytes, without it.
    pub fn string(&mut self, unit: usize) -> Result<&'t [u8], DecodeError> {
        self.align(8)?;
        let at = self.pos;
        let end = usize::try_from(self.end / 8).unwrap_or(usize::MAX).min(self.data.len());
        let start = usize::try_from(at / 8).unwrap_or(usize::MAX);
        let rest = self.data.get(start..end).unwrap_or(&[]);
        let len = find_zero(rest, unit).ok_or(DecodeError::Unterminated { at })?;
        self.pos = at + (len as u64 + unit as u64) * 8;
        Ok(&rest[..len])
    }

    /// `len` bytes of text, up to the first zero of `unit` bytes; all for 0.
    pub fn text(&mut self, len: u64, unit: usize) -> Result<&'t [u8], DecodeError> {
        self.align(8)?;
        let start = self.bump(len.checked_mul(8).ok_or_else(|| self.past_end(u64::MAX))?)? / 8;
        let range = usize::try_from(start).ok().zip(usize::try_from(start + len).ok());
        let bytes = range.and_then(|(start, end)| self.data.get(start..end)).unwrap_or(&[]);
        let len = find_zero(bytes, unit).unwrap_or(bytes.len());
        Ok(&bytes[..len])
    }

    /// Chooses the option of a variant.
    pub fn option(&mut self, variant: &Variant) -> Result<usize, DecodeError> {
        let raw = self.slot(variant.slot)?;
        let tag = if variant.tag_signed { i128::from(raw as i64) } else { i128::from(raw) };
        for &slot in &variant.slots {
            self.set(slot, None);
        }
        let hit = variant.ranges.iter().find(|(start, end, _)| *start <= tag && tag <= *end);
        hit.map(|&(_, _, option)| option).ok_or(DecodeError::NoOption { tag, at: self.pos })
    }

    /// Returns whether an optional field is there.
    pub fn present(&mut self, optional: &Optional) -> Result<bool, DecodeError> {
        let raw = self.slot(optional.slot)?;
        let value = if optional.signed { i128::from(raw as i64) } else { i128::from(raw) };
        for &slot in &optional.slots {
            self.set(slot, None);
        }
        Ok(optional.ranges.iter().any(|&(start, end)| start <= value && value <= end))
    }

    /// To be called after each element that began at `before`.
    pub fn progress(&mut self, before: u64) -> Result<(), DecodeError> {
        if self.pos == before {
            self.empty += 1;
            if self.empty > MAX_EMPTY {
                return Err(DecodeError::EmptyElements { at: self.pos });
            }
        }
        Ok(())
    }

    /// Passes over a field.
    #[inline]
    pub fn skip(&mut self, node: &Node) -> Result<(), DecodeError> {
        if let (Some(size), false) = (node.fixed, node.active) {
            self.align(node.align)?;
            return self.bump(size).map(drop);
        }
        self.skip_parts(node)
    }

    fn skip_parts(&mut self, node: &Node) -> Result<(), DecodeError> {
        match &node.kind {
            Kind::Int(int) => {
                self.align(node.align)?;
                self.int(int).map(drop)
            }
            Kind::Float { bits, .. } => {
                self.align(node.align)?;
                self.bump(u64::from(*bits)).map(drop)
            }
            Kind::Leb(int) => {
                self.align(node.align)?;
                self.leb(int).map(drop)
            }
            Kind::Str { unit } => self.string(*unit).map(drop),
            Kind::Struct { nodes, .. } => {
                self.align(node.align)?;
                nodes.iter().try_for_each(|node| self.skip(node))
            }
            Kind::Text { len, unit } => {
                self.align(node.align)?;
                self.text(*len, *unit).map(drop)
            }
            Kind::TextSequence { slot, unit } => {
                let len = self.slot(*slot)?;
                self.align(node.align)?;
                self.text(len, *unit).map(drop)
            }
            Kind::Array { len, element } => {
                self.align(node.align)?;
                self.elements(*len, element)
            }
            Kind::Sequence { slot, element } => {
                let len = self.slot(*slot)?;
                self.align(node.align)?;
                self.elements(len, element)
            }
            Kind::Optional(optional) => match self.present(optional)? {
                true => self.skip(&optional.inner),
                false => Ok(()),
            },
            Kind::Variant(variant) => {
                let option = self.option(variant)?;
                self.skip(&variant.options[option])
            }
        }
    }

    fn elements(&mut self, len: u64, element: &Node) -> Result<(), DecodeError> {
        self.align(element.align)?;
        if let (Some(size), false) = (element.fixed, element.active) {
            let Some(gaps) = len.checked_sub(1) else {
                return Ok(());
            };
            let stride = align_up(size, element.align);
            let total = stride.and_then(|s| s.checked_mul(gaps)).and_then(|t| t.checked_add(size));
            return self.bump(total.unwrap_or(u64::MAX)).map(drop);
        }
        for _ in 0..len {
            let before = self.pos;
            self.skip(element)?;
            self.progress(before)?;
        }
        Ok(())
    }
}

/// Returns how many bytes stand before the first zero of `unit` bytes, which stands at a
/// multiple of that; none if there is none.
fn find_zero(data: &[u8], unit: usize) -> Option<usize> {
    match unit {
        0 => None,
        1 => find_nul(data),
        _ => data.chunks_exact(unit).position(|c| c.iter().all(|&b| b == 0)).map(|n| n * unit),
    }
}
