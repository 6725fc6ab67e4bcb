//! The walk from a frame to the one that called it, and on.

use super::memory::{self, Stack};
use super::modules::{Finder, Module};
use super::rows::{Cfa, Row, Rows, Saved};
use super::table;
use crate::hash;

/// What the tables said of addresses so far.
static ROWS: Rows = Rows::new();
/// Modules of the last frames.
const RECENT: usize = 6;
/// Without a table: a frame is no longer than this.
const LONGEST: usize = 1 << 20;

/// Why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There is no other frame.
    Outermost,
    /// Nobody wants another one.
    Cut,
    /// How to go on is not known.
    Lost,
}

/// The registers by which a frame is unwound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers {
    pub pc: usize,
    pub sp: usize,
    /// The frame pointer, if it is known.
    pub bp: Option<usize>,
    /// Whether `pc` is the instruction that is executed next: else the one before it is a call.
    pub is_exact: bool,
}

impl Registers {
    /// Those of the function that this is inlined into.
    #[inline(always)]
    pub fn here() -> Self {
        let (pc, sp, bp): (usize, usize, usize);
        // SAFETY: reads registers.
        unsafe {
            std::arch::asm!(
                "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp,
                options(nomem, nostack, preserves_flags)
            );
        }
        Self { pc, sp, bp: Some(bp), is_exact: true }
    }

    /// An address inside of the instruction that the frame is at.
    #[inline(always)]
    pub fn address(&self) -> usize {
        self.pc.wrapping_sub(usize::from(!self.is_exact))
    }
}

/// Modules of the last frames: others are often in the same.
#[derive(Debug)]
pub(super) struct Recent<'f> {
    finder: &'f Finder,
    /// From the first on; one that holds no address if there were none.
    modules: [Module; RECENT],
    next: usize,
    /// Where the module of the last frame is.
    last: usize,
}

impl<'f> Recent<'f> {
    pub fn finder(&self) -> &'f Finder {
        self.finder
    }

    pub fn new(finder: &'f Finder) -> Self {
        let none = Module { memory: (0, 0), base: 0, table: 0, identity: 0 };
        Self { finder, modules: [none; RECENT], next: 0, last: 0 }
    }

    /// Returns the module that an address is in.
    #[inline(always)]
    pub fn module(&mut self, address: usize) -> Option<&Module> {
        if !self.modules.get(self.last).is_some_and(|module| module.contains(address)) {
            self.last = match self.modules.iter().position(|module| module.contains(address)) {
                Some(place) => place,
                None => self.find(address)?,
            };
        }
        self.modules.get(self.last)
    }

    /// Looks for one, and returns its place.
    #[inline(never)]
    fn find(&mut self, address: usize) -> Option<usize> {
        let (module, place) = (self.finder.module(address)?, self.next % RECENT);
        *self.modules.get_mut(place)? = module;
        self.next += 1;
        Some(place)
    }
}

/// Names a place in the code: the same wherever its module is loaded.
#[inline(always)]
pub(super) fn place(module: Option<&Module>, address: usize) -> u64 {
    match module {
        Some(module) => hash::mix(module.identity, address.wrapping_sub(module.base) as u64),
        None => hash::mix(0, address as u64),
    }
}

/// Shows the address of each frame, its module and what names the place, the innermost first, as long as `show` wants
/// another one.
#[inline(always)]
pub(super) fn walk(
    mut at: Registers,
    stack: &mut Stack,
    recent: &mut Recent<'_>,
    mut show: impl FnMut(usize, Option<&Module>, u64) -> bool,
) -> End {
    loop {
        let address = at.address();
        let module = recent.module(address);
        if module.is_none() && !at.is_exact && !follows_call(at.pc) {
            return End::Lost;
        }
        let place = place(module, address);
        if !show(address, module, place) {
            return End::Cut;
        }
        let found = row(module, address, place);
        // Where a function begins nobody has called it: who made this stack let it begin there, as `makecontext` does.
        if found == Row::None && !at.is_exact && row_at(module, at.pc) != Row::None {
            return End::Outermost;
        }
        match step(&at, found, stack) {
            Ok(next) if next.pc == 0 => return End::Outermost,
            Ok(next) => at = next,
            Err(end) => return end,
        }
    }
}

/// What the tables say of any address.
#[cold]
fn row_at(module: Option<&Module>, address: usize) -> Row {
    row(module, address, place(module, address))
}

/// What the tables say of an address, which `key` names.
#[inline(always)]
fn row(module: Option<&Module>, address: usize, key: u64) -> Row {
    let Some(module) = module else { return Row::None };
    ROWS.get(key).unwrap_or_else(|| read_row(module, address, key))
}

#[cold]
#[inline(never)]
fn read_row(module: &Module, address: usize, key: u64) -> Row {
    let row = if module.table == 0 { Row::None } else { table::row(module, address) };
    ROWS.keep(key, row);
    row
}

/// Returns the registers of the caller's frame.
#[inline(always)]
fn step(at: &Registers, row: Row, stack: &mut Stack) -> Result<Registers, End> {
    let (cfa, bp) = match row {
        Row::Frame(cfa, bp) => (cfa, bp),
        Row::Signal => return interrupted(at, stack).ok_or(End::Lost),
        Row::None => return by_frame_pointer(at, stack).ok_or(End::Lost),
        Row::Outermost => return Err(End::Outermost),
        Row::Odd => return Err(End::Lost),
    };
    by_row(at, cfa, bp, stack).ok_or(End::Lost)
}

#[inline(always)]
fn by_row(at: &Registers, cfa: Cfa, bp: Saved, stack: &mut Stack) -> Option<Registers> {
    let above = |base: usize, offset: i32| base.wrapping_add_signed(offset as isize);
    let cfa = match cfa {
        Cfa::Sp(offset) => above(at.sp, offset),
        Cfa::Bp(offset) => above(at.bp?, offset),
        Cfa::AtBp(offset) => stack.word(above(at.bp?, offset))?,
        Cfa::Plt(offset) => above(at.sp, offset).wrapping_add(usize::from(at.pc & 15 >= 11) * 8),
    };
    // Stacks grow downwards: what is not above is corrupt, and could go on for ever.
    if cfa <= at.sp {
        return None;
    }
    let pc = stack.word(cfa.wrapping_sub(8))?;
    let bp = match bp {
        Saved::Same => at.bp,
        Saved::AtCfa(offset) => Some(stack.word(above(cfa, offset))?),
        Saved::AtBp(offset) => Some(stack.word(above(at.bp?, offset))?),
        Saved::Gone => None,
    };
    Some(Registers { pc, sp: cfa, bp, is_exact: false })
}

/// Without a table: code that keeps frame pointers, as most that is made while the program runs.
#[cold]
fn by_frame_pointer(at: &Registers, stack: &mut Stack) -> Option<Registers> {
    let bp = at.bp?;
    if bp < at.sp || bp - at.sp > LONGEST {
        return None;
    }
    let (outer, pc) = (stack.word(bp)?, stack.word(bp + 8)?);
    Some(Registers { pc, sp: bp + 16, bp: Some(outer), is_exact: false })
}

/// The code that a signal handler has interrupted: the kernel has left its registers above the handler's return address,
/// in a `ucontext_t`.
#[cold]
fn interrupted(at: &Registers, stack: &mut Stack) -> Option<Registers> {
    const REGISTERS: usize = 40;
    const BP: usize = REGISTERS + 8 * libc::REG_RBP as usize;
    const SP: usize = REGISTERS + 8 * libc::REG_RSP as usize;
    const PC: usize = REGISTERS + 8 * libc::REG_RIP as usize;
    let [bp, sp, pc] = [BP, SP, PC].map(|offset| stack.word(at.sp.wrapping_add(offset)));
    // A handler may have had a stack of its own, above or below: each stack is gone through once, as the one that was
    // interrupted has no frame of this kind further inside.
    Some(Registers { pc: pc?, sp: sp?, bp, is_exact: true })
}

/// Whether a call stands before an address: code that is in no module was made by the program, and what is no code at all
/// shows that the stack is corrupt.
#[cold]
#[inline(never)]
pub(super) fn follows_call(pc: usize) -> bool {
    let first = pc.wrapping_sub(7);
    let before = memory::read::<7>(first).unwrap_or_else(|| {
        // It may begin a page, before which there is nothing.
        let mut bytes = [0; 7];
        for (place, byte) in bytes.iter_mut().enumerate().rev() {
            let Some([there]) = memory::read(first.wrapping_add(place)) else { break };
            *byte = there;
        }
        bytes
    });
    // `call` with a distance of 4 bytes, or by a register or by memory: FF /2, in its forms of 2 to 7 bytes.
    let by_place = |length: usize| match before.get(7 - length..) {
        Some([0xff, mode, rest @ ..]) => mode >> 3 & 7 == 2 && length == 2 + operand(*mode, rest.first()),
        _ => false,
    };
    before.get(2) == Some(&0xe8) || (2..=7).any(by_place)
}

/// Bytes behind the one that says where an operand is (ModRM), of which `next` is the first.
fn operand(mode: u8, next: Option<&u8>) -> usize {
    match (mode >> 6, mode & 7) {
        (0, 4) if next.is_some_and(|scaled| scaled & 7 == 5) => 5,
        (0, 5) | (2, 0..=3 | 5..) => 4,
        (0 | 3, 0..=3 | 6..) | (3, _) => 0,
        (0, _) | (1, 0..=3 | 5..) => 1,
        (1, _) => 2,
        _ => 5,
    }
}
