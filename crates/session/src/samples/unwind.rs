//! From the registers and the stack of a sample to its frames, by the tables that compilers leave for exceptions
//! (`.eh_frame`), and by frame pointers where there is none.
//!
//! Registers have two numberings: the kernel's, in which they come, and DWARF's, which tables use and this file too.

use std::rc::Rc;

use addr2line::gimli::{
    CfaRule, Encoding, EndianSlice, EvaluationResult, Expression, Format, LittleEndian, Register,
    RegisterRule, Value,
};
use hetrace_os::perf::sampled::Sample;

use super::code::{Bytes, Code, Row};
use super::space::{Place, Space};

/// Frames of a stack at most.
pub const DEEPEST: usize = 128;
/// DWARF's numbers.
const BP: usize = 6;
const SP: usize = 7;
const RETURN: usize = 16;
const REGISTERS: usize = 17;
/// By DWARF's numbers, the kernel's: ax, dx, cx, bx, si, di, bp, sp, r8 to r15, ip.
const KERNELS: [usize; REGISTERS] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];
/// Without a table: a frame is no longer than this.
const LONGEST: u64 = 1 << 20;
/// Steps of an expression.
const STEPS: u32 = 1000;

/// Why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// There is no other frame.
    Outermost,
    /// There are more than were copied, or than are wanted.
    Cut,
    /// How to go on is not known.
    Lost,
}

/// The stack of a sample.
struct Stack<'s> {
    from: u64,
    bytes: &'s [u8],
    /// There is more behind it.
    cut: bool,
}

impl Stack<'_> {
    fn word(&self, at: u64) -> Result<u64, End> {
        let place =
            at.checked_sub(self.from).and_then(|place| usize::try_from(place).ok()).ok_or(End::Lost)?;
        match place.checked_add(8).and_then(|end| self.bytes.get(place..end)) {
            Some(word) => word.try_into().map(u64::from_le_bytes).map_err(|_| End::Lost),
            None if self.cut && place < LONGEST as usize => Err(End::Cut),
            None => Err(End::Lost),
        }
    }
}

/// The registers of a frame; those that are not known are none.
#[derive(Debug, Clone)]
struct Registers([Option<u64>; REGISTERS]);

impl Registers {
    fn get(&self, register: Register) -> Result<u64, End> {
        self.0.get(usize::from(register.0)).copied().flatten().ok_or(End::Lost)
    }
}

/// Returns the frames of a sample, the innermost first, and why there are no more. The address of each is inside of the
/// instruction that it is at.
pub fn walk(space: &Space, sample: &Sample) -> (Vec<Place>, End) {
    let mut frames = Vec::new();
    let mut registers = Registers(KERNELS.map(|number| sample.registers.get(number).copied()));
    let stack = Stack { from: registers.0[SP].unwrap_or(0), bytes: &sample.stack, cut: sample.cut };
    let mut exact = true;
    loop {
        let Some(next) = registers.0[RETURN] else { return (frames, End::Lost) };
        if next == 0 {
            return (frames, End::Outermost);
        }
        let Some(place) = space.place(next.wrapping_sub(u64::from(!exact))) else {
            return (frames, End::Lost);
        };
        if frames.len() >= DEEPEST {
            return (frames, End::Cut);
        }
        frames.push(place.clone());
        match caller(&place, &registers, &stack, space, exact) {
            Ok((around, signal)) => (registers, exact) = (around, signal),
            Err(end) => return (frames, end),
        }
    }
}

/// Returns the registers of the frame around, and whether a signal interrupted that one.
fn caller(
    place: &Place,
    at: &Registers,
    stack: &Stack<'_>,
    space: &Space,
    exact: bool,
) -> Result<(Registers, bool), End> {
    let row = place.code.as_ref().map(|code| (Rc::clone(code), code.borrow_mut().row(place.address)));
    let Some((code, row)) = row else {
        return by_frame_pointer(at, stack, space).map(|found| (found, false));
    };
    let Row::Frame { cfa, registers, signal } = &*row else {
        // Where a function begins nobody has called it: who made this stack let it begin there.
        if !exact && *code.borrow_mut().row(place.address + 1) != Row::None {
            return Err(End::Outermost);
        }
        return by_frame_pointer(at, stack, space).map(|found| (found, false));
    };
    by_row(&code.borrow(), at, stack, cfa, registers).map(|found| (found, *signal))
}

fn by_row(
    code: &Code,
    at: &Registers,
    stack: &Stack<'_>,
    cfa: &CfaRule<usize>,
    rules: &[(Register, RegisterRule<usize>)],
) -> Result<Registers, End> {
    let evaluate = |expression, first| {
        let bytes = code.expression(expression).ok_or(End::Lost)?;
        value(bytes, first, at, stack)
    };
    let cfa = match cfa {
        CfaRule::RegisterAndOffset { register, offset } => at.get(*register)?.wrapping_add_signed(*offset),
        CfaRule::Expression(expression) => evaluate(expression, None)?,
    };
    // What a function may change is not known in its caller, unless the table says so.
    let mut around = at.clone();
    (around.0[SP], around.0[RETURN]) = (Some(cfa), None);
    for (register, rule) in rules {
        let found = match rule {
            RegisterRule::Undefined if usize::from(register.0) == RETURN => return Err(End::Outermost),
            RegisterRule::Undefined | RegisterRule::Architectural => None,
            RegisterRule::SameValue => continue,
            RegisterRule::Offset(offset) => Some(stack.word(cfa.wrapping_add_signed(*offset))?),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => Some(at.get(*other)?),
            RegisterRule::Expression(expression) => Some(stack.word(evaluate(expression, Some(cfa))?)?),
            RegisterRule::ValExpression(expression) => Some(evaluate(expression, Some(cfa))?),
            RegisterRule::Constant(value) => Some(*value),
        };
        if let Some(place) = around.0.get_mut(usize::from(register.0)) {
            *place = found;
        }
    }
    Ok(around)
}

/// Evaluates an expression.
fn value(bytes: Bytes<'_>, first: Option<u64>, at: &Registers, stack: &Stack<'_>) -> Result<u64, End> {
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };
    let expression: Expression<EndianSlice<'_, LittleEndian>> = Expression(bytes);
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(STEPS);
    if let Some(first) = first {
        evaluation.set_initial_value(first);
    }
    let mut result = evaluation.evaluate();
    loop {
        result = match result.map_err(|_| End::Lost)? {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                evaluation.resume_with_memory(Value::Generic(stack.word(address)?))
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                evaluation.resume_with_register(Value::Generic(at.get(register)?))
            }
            _ => return Err(End::Lost),
        };
    }
    let result = evaluation.result();
    match result.first().map(|piece| &piece.location) {
        Some(addr2line::gimli::Location::Address { address }) => Ok(*address),
        _ => Err(End::Lost),
    }
}

/// Code without a table, as just-in-time compilers make it, keeps a frame pointer, or does not.
fn by_frame_pointer(at: &Registers, stack: &Stack<'_>, space: &Space) -> Result<Registers, End> {
    let (bp, sp) = (at.0[BP].ok_or(End::Lost)?, at.0[SP].ok_or(End::Lost)?);
    if bp < sp || bp - sp > LONGEST || !bp.is_multiple_of(8) {
        return Err(End::Lost);
    }
    let mut around = Registers([None; REGISTERS]);
    around.0[BP] = Some(stack.word(bp)?);
    around.0[SP] = Some(bp + 16);
    let next = stack.word(bp + 8)?;
    if space.place(next.wrapping_sub(1)).is_none() {
        return Err(End::Lost);
    }
    around.0[RETURN] = Some(next);
    Ok(around)
}
