//! Unwind tables of a module: `.eh_frame_hdr`, a table of functions by address, and `.eh_frame`, which says by little
//! programs how each function keeps its frame (DWARF 5, 6.4; Linux Standard Base, 10.6).
//!
//! Read from [copies](super::copies) that the kernel has made, as nobody knows whether the module is still there: a corrupt
//! stack may lead anywhere.
//!
//! ```text
//!  .eh_frame_hdr: version, encodings, [where a function begins, its FDE], in order
//!  .eh_frame:     CIE: augmentation, factors, program ◄── FDE: where it begins, length, program
//! ```

use super::bytes::{Bytes, Source};
use super::course::{self, Course};
use super::modules::Module;
use super::program::{Factors, Machine, RETURN, Reach};
use super::rows::Row;

/// What the tables of a module that has some say of an address inside of an instruction.
pub(super) fn row(module: &Module, address: usize) -> Row {
    course::row(module, address).unwrap_or_else(|| read_row(module, address))
}

/// As [`row`], of a function that is not remembered.
pub(super) fn read_row(module: &Module, address: usize) -> Row {
    let mut source = Source::new(module);
    let Some(found) = find(&mut source, module.table, address).filter(|found| module.contains(*found)) else {
        return Row::None;
    };
    match Function::read(source, found, address) {
        Some(Ok(mut function)) => function.row(address).unwrap_or(Row::Odd),
        Some(Err(Outside)) => Row::None,
        None => Row::Odd,
    }
}

/// Returns the address of the FDE that may be that of an address.
fn find(source: &mut Source, header: usize, address: usize) -> Option<usize> {
    /// `.eh_frame` relative to here in 4 bytes, their number in 4, the table relative to the header in 4: what all linkers
    /// write.
    const KNOWN: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    if source.half(header)? != u32::from_ne_bytes(KNOWN) {
        return None;
    }
    let count = source.half(header.checked_add(8)?)?;
    let mut half = |index: usize, place: usize| {
        let at = header.checked_add(12 + 8 * index + place)?;
        Some(header.wrapping_add_signed(source.half(at)?.cast_signed() as isize))
    };
    let (mut first, mut last) = (0, count as usize);
    // The last that does not begin behind the address.
    while last - first > 1 {
        let middle = first + (last - first) / 2;
        if half(middle, 0)? <= address { first = middle } else { last = middle }
    }
    (last > first && half(first, 0)? <= address).then(|| half(first, 4)).flatten()
}

/// The address is not of this function: there is a gap between functions with tables.
struct Outside;

/// What the tables say of a function.
struct Function {
    begin: usize,
    length: usize,
    factors: Factors,
    is_signal: bool,
    /// Programs: of all such functions, then of this one.
    programs: [Bytes; 2],
}

impl Function {
    /// Reads the FDE at a place.
    fn read(source: Source, at: usize, address: usize) -> Option<Result<Self, Outside>> {
        let mut entry = entry(source, at)?;
        let place = entry.at;
        let common = place.checked_sub(entry.number::<4>()? as usize)?;
        let mut function = Self::common(common, entry)?;
        let [_, own] = &mut function.programs;
        function.begin = own.address(function.factors.address)?;
        function.length = own.address(function.factors.address & 0x0f)?;
        let augmentation = own.unsigned()?;
        own.skip(augmentation)?;
        let is_inside = address >= function.begin && address - function.begin < function.length;
        Some(if is_inside { Ok(function) } else { Err(Outside) })
    }

    /// Reads the CIE at a place; the rest is of the function itself.
    fn common(at: usize, own: Bytes) -> Option<Self> {
        let mut common = entry(*own.source(), at)?;
        let (id, version) = (common.number::<4>()?, common.byte()?);
        if id != 0 || !matches!(version, 1 | 3) {
            return None;
        }
        let mut letters = [0_u8; 8];
        let mut count = 0;
        loop {
            match common.byte()? {
                0 => break,
                letter => *letters.get_mut(count)? = letter,
            }
            count += 1;
        }
        let (code, data) = (common.unsigned()?, common.signed()?);
        let register = if version == 1 { common.byte()?.into() } else { common.unsigned()? };
        let (first, letters) = letters.get(..count)?.split_first()?;
        if *first != b'z' || register != RETURN {
            return None;
        }
        let length = common.unsigned()?;
        let program = common.at.checked_add(length as usize)?;
        let (mut address, mut is_signal) = (0, false);
        for letter in letters {
            match letter {
                b'R' => address = common.byte()?,
                b'S' => is_signal = true,
                b'L' => _ = common.byte()?,
                b'P' => {
                    let of_personality = common.byte()? & 0x0f;
                    common.address(of_personality)?;
                }
                b'B' => {}
                _ => return None,
            }
        }
        let left = common.end.checked_sub(program)?;
        let programs = [Bytes::new(*common.source(), program, left)?, own];
        Some(Self { begin: 0, length: 0, factors: Factors { code, data, address }, is_signal, programs })
    }

    /// The row of an address in it. Others are often asked for next, so how far it came to is remembered.
    fn row(&mut self, address: usize) -> Option<Row> {
        if self.is_signal {
            return Some(Row::Signal);
        }
        let mut machine = Machine::new();
        let [common, own] = &mut self.programs;
        // What stands before the first function is of all of it.
        machine.run(common, &self.factors, &mut Reach::new(self.begin), usize::MAX)?;
        let mut course =
            Course::new((self.begin, self.begin.checked_add(self.length)?), self.factors, *own, machine);
        let row = course.row(address);
        course.keep();
        row
    }
}

/// Returns what an entry of `.eh_frame` has behind its length.
fn entry(mut source: Source, at: usize) -> Option<Bytes> {
    let length = source.half(at)?;
    // 0 is the end, and all ones stand before a length of 8 bytes, which nobody needs.
    let is_one = length != 0 && length < 0xffff_fff0;
    is_one.then(|| Bytes::new(source, at.checked_add(4)?, length as usize)).flatten()
}
