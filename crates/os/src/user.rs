//! Probes that programs have in their code (USDT, `sys/sdt.h`): where one is, and where it says that its arguments are.
//!
//! ```text
//!  8@%rdi      8 bytes, unsigned, in a register          -4@$7       the number 7, signed
//!  -4@-20(%rbp)  4 bytes, signed, in memory               8@x0, 4@[sp, 12]  the same on AArch64
//! ```
//! A hit gives the registers, and of memory what lies above the stack pointer ([`STACK`] bytes): an argument elsewhere has
//! no value, and is written as such.

use std::path::PathBuf;

/// Bytes of the stack that a hit of a probe brings with arguments in memory.
pub const STACK: u32 = 512;
/// Most arguments of a probe: `sys/sdt.h` has no more.
pub const MOST_ARGUMENTS: usize = 12;

/// A place in a file that is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserProbe {
    /// What its events are called.
    pub event: String,
    /// The program or library.
    pub file: PathBuf,
    /// Where the instruction lies in the file, in bytes.
    pub offset: u64,
    /// Where the number lies in the file from which the program knows how many listen; 0 if it has none.
    pub semaphore: u64,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

/// An argument of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Where it is; none if that is not understood.
    pub place: Option<Place>,
}

/// Where an argument is. Registers have perf's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is this number.
    Number(i64),
    /// In a register, from this byte of it on.
    Register(u8, u8),
    /// In memory: so many bytes from where a register points to.
    Memory(u8, i64),
}

/// Reads the arguments of a note. What makes no sense has no place.
pub fn arguments(text: &str) -> Vec<Argument> {
    pieces(text).into_iter().take(MOST_ARGUMENTS).map(argument).collect()
}

/// Splits at blanks that are in no brackets.
fn pieces(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ' ' if depth <= 0 => {
                found.extend(text.get(begin..at).filter(|piece| !piece.is_empty()));
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn argument(text: &str) -> Argument {
    let unknown = Argument { size: 8, signed: false, place: None };
    let Some((size, at)) = text.split_once('@') else {
        return Argument { place: place(text), ..unknown };
    };
    let signed = size.starts_with('-');
    // Numbers of floating point have an `f` behind their size: their bits are in registers that are not here.
    match size.trim_start_matches('-').parse() {
        Ok(size @ (1 | 2 | 4 | 8)) => Argument { size, signed, place: place(at.trim()) },
        _ => unknown,
    }
}

fn place(text: &str) -> Option<Place> {
    if cfg!(target_arch = "x86_64") { of_x86(text) } else { of_arm(text) }
}

/// Names of registers of x86-64 by perf's numbers (`asm/perf_regs.h`): 64, 32, 16 and 8 bits.
const X86: [[&str; 4]; 8] = [
    ["rax", "eax", "ax", "al"],
    ["rbx", "ebx", "bx", "bl"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rsp", "esp", "sp", "spl"],
];
/// The number of `r8`, and after it of `r9` to `r15`.
const X86_R8: u8 = 16;
/// Registers of x86-64 that a hit brings, as bits.
const X86_MASK: u64 = 0xff_01ff;
/// The stack pointer.
const X86_SP: u8 = 7;
/// All of AArch64's: x0 to x30, the stack pointer, the instruction.
const ARM_MASK: u64 = 0x1_ffff_ffff;
const ARM_SP: u8 = 31;

/// Registers that a hit brings, as bits by perf's numbers.
pub const MASK: u64 = if cfg!(target_arch = "x86_64") { X86_MASK } else { ARM_MASK };
/// The number of the stack pointer.
pub const SP: u8 = if cfg!(target_arch = "x86_64") { X86_SP } else { ARM_SP };

/// A register of x86-64, and from which byte of it on.
fn x86_register(name: &str) -> Option<(u8, u8)> {
    let name = name.strip_prefix('%')?;
    if let Some(number) = name.strip_prefix('r') {
        let number = number.trim_end_matches(['d', 'w', 'b']);
        if let Ok(number @ 8..=15) = number.parse::<u8>() {
            return Some((X86_R8 + number - 8, 0));
        }
    }
    if let Some(at) = ["ah", "bh", "ch", "dh"].iter().position(|high| *high == name) {
        return Some((at as u8, 1));
    }
    X86.iter().position(|names| names.contains(&name)).map(|at| (at as u8, 0))
}

fn of_x86(text: &str) -> Option<Place> {
    if let Some(number) = text.strip_prefix('$') {
        return number.parse().ok().map(Place::Number);
    }
    if let Some((register, byte)) = x86_register(text) {
        return Some(Place::Register(register, byte));
    }
    // Neither names of variables nor an index.
    let (offset, base) = text.strip_suffix(')')?.split_once('(')?;
    let offset = if offset.is_empty() { 0 } else { offset.parse().ok()? };
    x86_register(base).map(|(register, _)| Place::Memory(register, offset))
}

fn arm_register(name: &str) -> Option<u8> {
    match name {
        "sp" | "wsp" => Some(ARM_SP),
        "xzr" | "wzr" => None,
        _ => name.strip_prefix(['x', 'w'])?.parse().ok().filter(|number| *number <= 30),
    }
}

fn of_arm(text: &str) -> Option<Place> {
    if let Some(register) = arm_register(text) {
        return Some(Place::Register(register, 0));
    }
    let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        return text.parse().ok().map(Place::Number);
    };
    let (base, offset) = inside.split_once(',').unwrap_or((inside, "0"));
    let offset = offset.trim().trim_start_matches('#').parse().ok()?;
    arm_register(base.trim()).map(|register| Place::Memory(register, offset))
}

/// What a hit brings.
#[derive(Debug, Clone, Copy)]
pub struct Hit<'a> {
    /// Registers of [`MASK`], those of lower numbers first, each of 8 bytes.
    pub registers: &'a [u8],
    /// Memory from the stack pointer on.
    pub stack: &'a [u8],
}

impl Hit<'_> {
    fn register(&self, number: u8) -> Option<u64> {
        if MASK >> number & 1 == 0 {
            return None;
        }
        let before = (MASK & ((1 << number) - 1)).count_ones() as usize;
        let bytes = self.registers.get(before * 8..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*bytes))
    }

    /// Returns an argument, extended to 64 bits as its sign demands; none if it is not in what the hit brings.
    pub fn value(&self, argument: &Argument) -> Option<u64> {
        let bits = u32::from(argument.size) * 8;
        let raw = match argument.place? {
            Place::Number(number) => number.cast_unsigned(),
            Place::Register(number, byte) => self.register(number)? >> (8 * u32::from(byte)),
            Place::Memory(number, offset) => {
                let address = self.register(number)?.wrapping_add_signed(offset);
                let into = usize::try_from(address.checked_sub(self.register(SP)?)?).ok()?;
                let bytes = self.stack.get(into..into.checked_add(usize::from(argument.size))?)?;
                let mut all = [0; 8];
                all.get_mut(..bytes.len())?.copy_from_slice(bytes);
                u64::from_le_bytes(all)
            }
        };
        let above = 64 - bits;
        let shifted = raw << above;
        Some(if argument.signed {
            (shifted.cast_signed() >> above).cast_unsigned()
        } else {
            shifted >> above
        })
    }
}

/// Returns whether an argument is in memory.
pub fn is_in_memory(argument: &Argument) -> bool {
    matches!(argument.place, Some(Place::Memory(..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(size: u8, signed: bool, place: Option<Place>) -> Argument {
        Argument { size, signed, place }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn arguments_of_notes_are_read() {
        let found = arguments(
            "8@%rdi -4@%r9d 1@%ah 2@$-7 -4@-20(%rbp) 8@(%rsp) 8@foo(%rip) 8f@%xmm0 %rbx 8@4(%rax,%rdx,8)",
        );
        let expected = [
            is(8, false, Some(Place::Register(5, 0))),
            is(4, true, Some(Place::Register(17, 0))),
            is(1, false, Some(Place::Register(0, 1))),
            is(2, false, Some(Place::Number(-7))),
            is(4, true, Some(Place::Memory(6, -20))),
            is(8, false, Some(Place::Memory(7, 0))),
            is(8, false, None),
            is(8, false, None),
            is(8, false, Some(Place::Register(1, 0))),
            is(8, false, None),
        ];
        assert_eq!(found, expected);
        assert!(arguments("").is_empty());
        assert_eq!(arguments(&"8@%rdi ".repeat(20)).len(), MOST_ARGUMENTS);
    }

    #[test]
    fn arguments_of_the_other_processor_are_read() {
        assert_eq!(of_arm("w3"), Some(Place::Register(3, 0)));
        assert_eq!(of_arm("[sp, 12]"), Some(Place::Memory(31, 12)));
        assert_eq!(of_arm("[x29, #-8]"), Some(Place::Memory(29, -8)));
        assert_eq!((of_arm("-5"), of_arm("x31"), of_arm("[x1, x2]")), (Some(Place::Number(-5)), None, None));
        assert_eq!(pieces("8@[sp, 12] 4@w0"), ["8@[sp, 12]", "4@w0"]);
    }

    #[test]
    fn values_are_those_of_registers_and_of_the_stack() {
        let number =
            |register: u8| if register == SP { 0x1000 } else { 0xffff_ffff_ffff_fff0 | u64::from(register) };
        let registers: Vec<u8> =
            (0..64).filter(|r| MASK >> r & 1 == 1).flat_map(|r| number(r as u8).to_ne_bytes()).collect();
        let stack: Vec<u8> = (0..64).collect();
        let hit = Hit { registers: &registers, stack: &stack };
        let value = |size, signed, place| hit.value(&is(size, signed, Some(place)));
        assert_eq!(value(8, false, Place::Register(5, 0)), Some(0xffff_ffff_ffff_fff5));
        assert_eq!(value(4, false, Place::Register(2, 0)), Some(0xffff_fff2));
        assert_eq!(value(4, true, Place::Register(2, 0)), Some((-14i64).cast_unsigned()));
        assert_eq!(value(1, false, Place::Register(2, 1)), Some(0xff));
        assert_eq!(value(4, false, Place::Memory(SP, 4)), Some(0x0706_0504));
        assert_eq!(value(4, false, Place::Memory(SP, 61)), None, "beyond what was brought");
        assert_eq!(value(4, false, Place::Memory(SP, -8)), None, "below the stack");
        assert_eq!(value(2, true, Place::Number(-7)), Some((-7i64).cast_unsigned()));
        assert_eq!(
            Hit { registers: &[], stack: &[] }.value(&is(8, false, Some(Place::Register(1, 0)))),
            None
        );
    }
}
