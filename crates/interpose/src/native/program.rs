//! The little programs by which unwind tables say how a function keeps its frame (DWARF 5, 6.4.2).

use super::bytes::Bytes;
use super::rows::{Cfa, Row, Saved};

/// Numbers of registers.
const RBP: u64 = 6;
const RSP: u64 = 7;
pub(super) const RETURN: u64 = 16;
/// Instructions of a program, at most.
const MOST: usize = 1 << 14;
/// States that are remembered, at most.
const DEEPEST: usize = 8;

/// What a program has come to. What is not read here is none, which makes the row odd if it is still so at the address.
#[derive(Debug, Clone, Copy)]
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

/// What all programs of a function have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factors {
    /// Of distances in the code.
    pub code: u64,
    /// Of offsets on the stack.
    pub data: i64,
    /// How addresses are encoded.
    pub address: u8,
}

/// How far a program was run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// What it has come to holds from this address on,
    pub from: usize,
    /// and up to this one, unless it has ended.
    pub place: usize,
    /// Instructions so far.
    count: usize,
}

impl Reach {
    /// At the beginning of a function.
    pub fn new(begin: usize) -> Self {
        Self { from: begin, place: begin, count: 0 }
    }
}

/// Runs programs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    now: State,
    first: State,
    remembered: [State; DEEPEST],
    count: usize,
}

impl Machine {
    pub fn new() -> Self {
        let state = State { cfa: None, bp: Some(Saved::Same), returns: None, register: u64::MAX, offset: 0 };
        Self { now: state, first: state, remembered: [state; DEEPEST], count: 0 }
    }

    /// What was run so far is what holds where a function begins.
    pub fn begin(&mut self) {
        (self.first, self.count) = (self.now, 0);
    }

    /// As it was where the function begins.
    pub fn restart(&mut self) {
        (self.now, self.count) = (self.first, 0);
    }

    /// As after instructions that say that the return address is below the CFA, so far above the stack pointer.
    #[cfg(test)]
    pub fn cfa_for_tests(&mut self, offset: i64) {
        self.cfa(RSP, offset);
        self.now.set(RETURN, Rule::AtCfa(-8));
    }

    /// The row of what was run so far.
    pub fn row(&self) -> Option<Row> {
        self.now.row()
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

    /// Runs a program on, up to an address that is not below where it has come to. None if it is damaged.
    pub fn run(
        &mut self,
        program: &mut Bytes,
        factors: &Factors,
        reach: &mut Reach,
        address: usize,
    ) -> Option<()> {
        while reach.count < MOST {
            if program.is_empty() {
                reach.from = reach.from.max(reach.place);
                return Some(());
            }
            reach.count += 1;
            let operation = program.byte()?;
            let low = u64::from(operation & 0x3f);
            let ahead = match operation {
                0x40..=0x7f => Some(low),
                0x02 => Some(program.number::<1>()?),
                0x03 => Some(program.number::<2>()?),
                0x04 => Some(program.number::<4>()?),
                _ => None,
            };
            let next = if let Some(ahead) = ahead {
                reach.place.checked_add(usize::try_from(ahead.checked_mul(factors.code)?).ok()?)?
            } else if operation == 0x01 {
                program.address(factors.address)?
            } else {
                self.one(operation, low, program, factors.data)?;
                continue;
            };
            // Programs go upwards; of one that does not, what holds below the highest place is not known here.
            (reach.from, reach.place) = (reach.from.max(reach.place), next);
            if next > address {
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
    let mut inside = Bytes::new(*program.source(), program.at, end - program.at)?;
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
