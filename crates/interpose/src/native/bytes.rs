//! Numbers of unwind tables, as they are encoded there (DWARF 5, 7.6 and 7.24).

use super::copies::{self, BLOCK, Block};
use super::memory;
use super::modules::Module;

/// A module's memory, read block by block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    module: Module,
    /// The block that was read last, and where it is from; 0: none.
    block: Block,
    from: usize,
}

impl Source {
    pub fn new(module: &Module) -> Self {
        Self { module: *module, block: Block::default(), from: 0 }
    }

    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the word at the multiple of 8 that is not above an address.
    #[inline]
    fn word(&mut self, at: usize) -> Option<u64> {
        let from = at & !(BLOCK - 1);
        if from != self.from || from == 0 {
            self.from = 0;
            self.block = copies::block(&self.module, from)?;
            self.from = from;
        }
        self.block.get(at % BLOCK / 8).copied()
    }

    /// Reads a number of 4 bytes.
    #[inline]
    pub fn half(&mut self, at: usize) -> Option<u32> {
        if !at.is_multiple_of(4) {
            // No table has it so.
            return memory::read(at).map(u32::from_ne_bytes);
        }
        Some((self.word(at)? >> (8 * (at % 8))) as u32)
    }
}

/// Bytes of a table, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes {
    pub at: usize,
    pub end: usize,
    source: Source,
}

impl Bytes {
    pub fn new(source: Source, at: usize, length: usize) -> Option<Self> {
        Some(Self { at, end: at.checked_add(length)?, source })
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        let byte = self.source.word(self.at)? >> (8 * (self.at % 8));
        self.at += 1;
        Some(byte as u8)
    }

    pub fn number<const N: usize>(&mut self) -> Option<u64> {
        (0..N).try_fold(0, |number, place| Some(number | u64::from(self.byte()?) << (8 * place)))
    }

    /// A number in groups of seven bits.
    #[inline]
    pub fn unsigned(&mut self) -> Option<u64> {
        self.groups().map(|(number, _)| number)
    }

    pub fn signed(&mut self) -> Option<i64> {
        let (number, bits) = self.groups()?;
        let above = 64_u32.saturating_sub(bits);
        Some(number.cast_signed() << above >> above)
    }

    #[inline]
    fn groups(&mut self) -> Option<(u64, u32)> {
        let (mut number, mut bits) = (0, 0);
        loop {
            let byte = self.byte()?;
            if bits > 63 {
                return None;
            }
            number |= u64::from(byte & 0x7f) << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                return Some((number, bits));
            }
        }
    }

    pub fn skip(&mut self, length: u64) -> Option<()> {
        let left = self.end.checked_sub(self.at)?;
        self.at += usize::try_from(length).ok().filter(|length| *length <= left)?;
        Some(())
    }

    /// An address in an encoding of `.eh_frame`; none in one that is not known.
    pub fn address(&mut self, encoding: u8) -> Option<usize> {
        let at = self.at;
        let value = match encoding & 0x0f {
            0x0 | 0x4 | 0xc => self.number::<8>()?,
            0x3 => self.number::<4>()?,
            0xb => (self.number::<4>()? as i32 as i64).cast_unsigned(),
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value as usize),
            0x10 => Some(at.wrapping_add(value as usize)),
            _ => None,
        }
    }
}
