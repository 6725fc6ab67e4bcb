//! Unwind tables of a module: `.eh_frame_hdr`, a table of functions by address, and `.eh_frame`, which says by little
//! programs how each function keeps its frame (DWARF 5, 6.4; Linux Standard Base, 10.6).
//!
//! Read by the kernel, as nobody knows whether the module is still there: a corrupt stack may lead anywhere.
//!
//! ```text
//!  .eh_frame_hdr: version, encodings, [where a function begins, its FDE], in order
//!  .eh_frame:     CIE: augmentation, factors, program ◄── FDE: where it begins, length, program
//! ```

use super::memory;
use super::rows::{Cfa, Row, Saved};

/// Numbers of registers.
const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN: u64 = 16;
/// Instructions of a function's programs, at most.
const MOST: usize = 1 << 14;
/// States that are remembered, at most.
const DEEPEST: usize = 8;

/// What the tables say of an address inside of an instruction. `header` is the address of `.eh_frame_hdr`; all of the
/// module lies in `module`.
pub(super) fn row(header: usize, module: (usize, usize), address: usize) -> Row {
    let Some(found) = find(header, address) else { return Row::None };
    let inside = |at: usize| at >= module.0 && at < module.1;
    if !inside(found) {
        return Row::None;
    }
    match Function::read(found, address) {
        Some(Ok(function)) => function.row(address).unwrap_or(Row::Odd),
        Some(Err(Outside)) => Row::None,
        None => Row::Odd,
    }
}

/// Returns the address of the FDE that may be that of an address.
fn find(header: usize, address: usize) -> Option<usize> {
    /// `.eh_frame` relative to here in 4 bytes, their number in 4, the table relative to the header in 4: what all linkers
    /// write.
    const KNOWN: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    let head = memory::read::<12>(header)?;
    let (known, count) = (head.first_chunk::<4>()?, head.last_chunk::<4>()?);
    if *known != KNOWN {
        return None;
    }
    let pair = |index: usize| {
        let pair = memory::read::<8>(header.checked_add(12 + 8 * index)?)?;
        let at = |half: &[u8; 4]| header.wrapping_add_signed(i32::from_ne_bytes(*half) as isize);
        Some([at(pair.first_chunk()?), at(pair.last_chunk()?)])
    };
    let (mut first, mut last) = (0, u32::from_ne_bytes(*count) as usize);
    // The last that does not begin behind the address.
    while last - first > 1 {
        let middle = first + (last - first) / 2;
        let [begins, _] = pair(middle)?;
        if begins <= address { first = middle } else { last = middle }
    }
    let [begins, entry] = if last > first { pair(first)? } else { return None };
    (begins <= address).then_some(entry)
}

/// Bytes of a table, read in pieces.
struct Bytes {
    at: usize,
    end: usize,
    piece: [u8; 64],
    from: usize,
}

impl Bytes {
    fn new(at: usize, length: usize) -> Option<Self> {
        Some(Self { at, end: at.checked_add(length)?, piece: [0; 64], from: 0 })
    }

    fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    fn byte(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        let held = self.at.checked_sub(self.from).filter(|place| self.from != 0 && *place < self.piece.len());
        let place = match held {
            Some(place) => place,
            None => {
                // The table's end may be that of the memory.
                let length = self.piece.len().min(self.end - self.at);
                // SAFETY: room for at most as many bytes as the piece has.
                unsafe { crate::peek::read(self.at as *const u8, self.piece.as_mut_ptr(), length) }.ok()?;
                self.from = self.at;
                0
            }
        };
        self.at += 1;
        self.piece.get(place).copied()
    }

    fn number<const N: usize>(&mut self) -> Option<u64> {
        (0..N).try_fold(0, |number, place| Some(number | u64::from(self.byte()?) << (8 * place)))
    }

    /// A number in groups of seven bits.
    fn unsigned(&mut self) -> Option<u64> {
        self.groups().map(|(number, _)| number)
    }

    fn signed(&mut self) -> Option<i64> {
        let (number, bits) = self.groups()?;
        let above = 64_u32.saturating_sub(bits);
        Some(number.cast_signed() << above >> above)
    }

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

    fn skip(&mut self, length: u64) -> Option<()> {
        let left = self.end.checked_sub(self.at)?;
        self.at += usize::try_from(length).ok().filter(|length| *length <= left)?;
        Some(())
    }

    /// An address in an encoding of `.eh_frame`; none in one that is not known.
    fn address(&mut self, encoding: u8) -> Option<usize> {
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

/// The address is not of this function: there is a gap between functions with tables.
struct Outside;

/// What the tables say of a function.
struct Function {
    begin: usize,
    code_factor: u64,
    data_factor: i64,
    address: u8,
    is_signal: bool,
    /// Programs: of all such functions, then of this one.
    programs: [Bytes; 2],
}

impl Function {
    /// Reads the FDE at a place.
    fn read(at: usize, address: usize) -> Option<Result<Self, Outside>> {
        let mut entry = entry(at)?;
        let place = entry.at;
        let common = place.checked_sub(entry.number::<4>()? as usize)?;
        let mut function = Self::common(common, entry)?;
        let [_, own] = &mut function.programs;
        function.begin = own.address(function.address)?;
        let length = own.address(function.address & 0x0f)?;
        let augmentation = own.unsigned()?;
        own.skip(augmentation)?;
        let is_inside = address >= function.begin && address - function.begin < length;
        Some(if is_inside { Ok(function) } else { Err(Outside) })
    }

    /// Reads the CIE at a place; the rest is of the function itself.
    fn common(at: usize, own: Bytes) -> Option<Self> {
        let mut common = entry(at)?;
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
        let (code_factor, data_factor) = (common.unsigned()?, common.signed()?);
        let register = if version == 1 { common.byte()?.into() } else { common.unsigned()? };
        let (first, letters) = letters.get(..count)?.split_first()?;
        if *first != b'z' || register != RETURN {
            return None;
        }
        let length = common.unsigned()?;
        let program = common.at.checked_add(length as usize)?;
        let (mut encoding, mut is_signal) = (0, false);
        for letter in letters {
            match letter {
                b'R' => encoding = common.byte()?,
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
        let programs = [Bytes::new(program, left)?, own];
        Some(Self { begin: 0, code_factor, data_factor, address: encoding, is_signal, programs })
    }

    /// The row of an address in it.
    fn row(mut self, address: usize) -> Option<Row> {
        if self.is_signal {
            return Some(Row::Signal);
        }
        let mut machine = Machine::new();
        let [common, own] = &mut self.programs;
        let factors = (self.code_factor, self.data_factor);
        let mut place = self.begin;
        // What stands before the first function is of all of it.
        machine.run(common, factors, self.address, &mut place, usize::MAX)?;
        machine.first = machine.now;
        machine.run(own, factors, self.address, &mut place, address)?;
        machine.now.row()
    }
}

/// Returns what an entry of `.eh_frame` has behind its length.
fn entry(at: usize) -> Option<Bytes> {
    let length = u32::from_ne_bytes(memory::read(at)?);
    // 0 is the end, and all ones stand before a length of 8 bytes, which nobody needs.
    let is_one = length != 0 && length < 0xffff_fff0;
    is_one.then(|| Bytes::new(at.checked_add(4)?, length as usize)).flatten()
}

/// What a program has come to. What is not read here is none, which makes the row odd if it is still so at the address.
#[derive(Clone, Copy)]
struct State {
    cfa: Option<Cfa>,
    bp: Option<Saved>,
    /// Whether the return address is right below the CFA, or gone; none: elsewhere.
    returns: Option<bool>,
    /// The register of the CFA, and the offset, which instructions of their own change.
    register: u64,
    offset: i64,
}

impl State {
    fn row(self) -> Option<Row> {
        match self.returns? {
            true => Some(Row::Frame(self.cfa?, self.bp?)),
            false => Some(Row::Outermost),
        }
    }

    fn set(&mut self, register: u64, rule: Rule) {
        match (register, rule) {
            (RBP, Rule::Same) => self.bp = Some(Saved::Same),
            (RBP, Rule::Gone) => self.bp = Some(Saved::Gone),
            (RBP, Rule::AtCfa(offset)) => self.bp = i32::try_from(offset).ok().map(Saved::AtCfa),
            (RBP, Rule::AtBp(offset)) => self.bp = i32::try_from(offset).ok().map(Saved::AtBp),
            (RBP, Rule::Other) => self.bp = None,
            (RETURN, Rule::Gone) => self.returns = Some(false),
            (RETURN, Rule::AtCfa(-8)) => self.returns = Some(true),
            (RETURN, _) => self.returns = None,
            _ => {}
        }
    }
}

/// What happened to a register.
#[derive(Clone, Copy)]
enum Rule {
    Same,
    Gone,
    AtCfa(i64),
    AtBp(i64),
    Other,
}

/// Runs programs.
struct Machine {
    now: State,
    first: State,
    remembered: [State; DEEPEST],
    count: usize,
}

impl Machine {
    fn new() -> Self {
        let state = State { cfa: None, bp: Some(Saved::Same), returns: None, register: u64::MAX, offset: 0 };
        Self { now: state, first: state, remembered: [state; DEEPEST], count: 0 }
    }

    fn cfa(&mut self, register: u64, offset: i64) {
        (self.now.register, self.now.offset) = (register, offset);
        let offset = i32::try_from(offset).ok();
        self.now.cfa = match register {
            RSP => offset.map(Cfa::Sp),
            RBP => offset.map(Cfa::Bp),
            _ => None,
        };
    }

    /// Runs a program from the place that it begins at up to an address. None if it is damaged.
    fn run(
        &mut self,
        program: &mut Bytes,
        factors: (u64, i64),
        encoding: u8,
        place: &mut usize,
        address: usize,
    ) -> Option<()> {
        for _ in 0..MOST {
            if program.is_empty() {
                return Some(());
            }
            let operation = program.byte()?;
            let low = u64::from(operation & 0x3f);
            let ahead = match operation {
                0x40..=0x7f => Some(low),
                0x02 => Some(program.number::<1>()?),
                0x03 => Some(program.number::<2>()?),
                0x04 => Some(program.number::<4>()?),
                _ => None,
            };
            if let Some(ahead) = ahead {
                *place = place.checked_add(usize::try_from(ahead.checked_mul(factors.0)?).ok()?)?;
            } else if operation == 0x01 {
                *place = program.address(encoding)?;
            } else {
                self.one(operation, low, program, factors.1)?;
                continue;
            }
            if *place > address {
                return Some(());
            }
        }
        None
    }

    /// Does what an instruction says that does not change the place.
    fn one(&mut self, operation: u8, low: u64, program: &mut Bytes, factor: i64) -> Option<()> {
        let scaled = |offset: i64| offset.checked_mul(factor);
        match operation {
            // DW_CFA_offset, _restore
            0x80..=0xbf => {
                let offset = scaled(program.unsigned()?.cast_signed())?;
                self.now.set(low, Rule::AtCfa(offset));
            }
            0xc0..=0xff => self.restore(low),
            0x00 => {}
            // DW_CFA_offset_extended, its signed form, that of old GNU compilers
            0x05 | 0x11 | 0x2f => {
                let register = program.unsigned()?;
                let offset =
                    if operation == 0x11 { program.signed()? } else { program.unsigned()?.cast_signed() };
                let offset = scaled(offset)?;
                self.now.set(register, Rule::AtCfa(if operation == 0x2f { -offset } else { offset }));
            }
            // DW_CFA_restore_extended, _undefined, _same_value
            0x06 => self.restore(program.unsigned()?),
            0x07 => self.now.set(program.unsigned()?, Rule::Gone),
            0x08 => self.now.set(program.unsigned()?, Rule::Same),
            // DW_CFA_register, _val_offset, and its signed form
            0x09 | 0x14 | 0x15 => {
                self.now.set(program.unsigned()?, Rule::Other);
                program.unsigned()?;
            }
            // DW_CFA_remember_state, _restore_state
            0x0a => {
                *self.remembered.get_mut(self.count)? = self.now;
                self.count += 1;
            }
            0x0b => {
                self.count = self.count.checked_sub(1)?;
                self.now = *self.remembered.get(self.count)?;
            }
            // DW_CFA_GNU_args_size
            0x2e => _ = program.unsigned()?,
            // DW_CFA_expression, _val_expression
            0x10 | 0x16 => {
                let register = program.unsigned()?;
                let rule = match expression(program)? {
                    Some(Expression::Bp(offset)) if operation == 0x10 => Rule::AtBp(offset),
                    _ => Rule::Other,
                };
                self.now.set(register, rule);
            }
            _ => return self.of_cfa(operation, program, factor),
        }
        Some(())
    }

    /// Does what an instruction says that is about the CFA.
    fn of_cfa(&mut self, operation: u8, program: &mut Bytes, factor: i64) -> Option<()> {
        let scaled = |offset: i64| offset.checked_mul(factor);
        let plain = |offset: u64| i64::try_from(offset).ok();
        match operation {
            // DW_CFA_def_cfa, and its signed form
            0x0c => {
                let (register, offset) = (program.unsigned()?, plain(program.unsigned()?)?);
                self.cfa(register, offset);
            }
            0x12 => {
                let (register, offset) = (program.unsigned()?, scaled(program.signed()?)?);
                self.cfa(register, offset);
            }
            // DW_CFA_def_cfa_register
            0x0d => {
                let register = program.unsigned()?;
                self.cfa(register, self.now.offset);
            }
            // DW_CFA_def_cfa_offset, and its signed form
            0x0e => {
                let offset = plain(program.unsigned()?)?;
                self.cfa(self.now.register, offset);
            }
            0x13 => {
                let offset = scaled(program.signed()?)?;
                self.cfa(self.now.register, offset);
            }
            // DW_CFA_def_cfa_expression
            0x0f => {
                self.now.cfa = match expression(program)? {
                    Some(Expression::AtBp(offset)) => i32::try_from(offset).ok().map(Cfa::AtBp),
                    Some(Expression::Plt(offset)) => i32::try_from(offset).ok().map(Cfa::Plt),
                    _ => None,
                };
            }
            _ => return None,
        }
        Some(())
    }

    /// A register is as it was at the beginning of the function.
    fn restore(&mut self, register: u64) {
        match register {
            RBP => self.now.bp = self.first.bp,
            RETURN => self.now.returns = self.first.returns,
            _ => {}
        }
    }
}

/// Expressions that compilers and linkers write.
enum Expression {
    /// So many bytes above the frame pointer.
    Bp(i64),
    /// The word there.
    AtBp(i64),
    /// See [`Cfa::Plt`].
    Plt(i64),
}

/// Reads an expression; the inner none is one that is not known.
fn expression(program: &mut Bytes) -> Option<Option<Expression>> {
    let length = program.unsigned()?;
    let end = program.at.checked_add(usize::try_from(length).ok()?).filter(|end| *end <= program.end)?;
    let mut inside = Bytes::new(program.at, end - program.at)?;
    program.at = end;
    Some(known_expression(&mut inside))
}

fn known_expression(inside: &mut Bytes) -> Option<Expression> {
    /// breg16 0; lit15; and; lit11; ge; lit3; shl; plus
    const PLT: [u8; 9] = [0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let (register, offset) = (inside.byte()?, inside.signed()?);
    if inside.is_empty() {
        return (register == 0x76).then_some(Expression::Bp(offset));
    }
    let mut rest = [0_u8; PLT.len()];
    let mut count = 0;
    while !inside.is_empty() {
        *rest.get_mut(count)? = inside.byte()?;
        count += 1;
    }
    match (register, rest.get(..count)?) {
        // DW_OP_breg6, DW_OP_deref
        (0x76, [0x06]) => Some(Expression::AtBp(offset)),
        // DW_OP_breg7, and what linkers write for a table of jumps of 16 bytes each.
        (0x77, rest) if rest == PLT => Some(Expression::Plt(offset)),
        _ => None,
    }
}
