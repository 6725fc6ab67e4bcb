//! The programs: what the traced threads do themselves, and which threads these are. [`super::scheduler`] has those of
//! switches and wake-ups.
//!
//! ```text
//!  threads: a byte for each number that a thread can have: 0 if it is not followed, 1 if it is, 2 once it or an
//!    ancestor has begun a program
//!    sched_wakeup_new gives the child its parent's value; exec stores 2; exit stores 0
//! ```
//! Programs that cannot record something count it.
//!
//! Arguments and fields are read where the kernel describes its types (`typed.rs`); else registers are copied by a call,
//! and of switches and wake-ups the records that perf makes. Of programs at tracepoints of perf's the kernel runs one at
//! a time on a CPU, and leaves out another that an interrupt would begin meanwhile. So there are such only where
//! interrupts are off: at switches and wake-ups. For the same reason nobody makes system calls on maps while it is
//! recorded, which keep these programs away as well: numbers are read from memory that is shared with the kernel, and
//! threads are followed by writing there.

use std::os::fd::AsFd;

use super::code::{Code, Function, If, Label, R, Size};
use super::maps::Maps;
use super::room::{self, Of, RECORD};
use super::threads::{BEGUN, Threads};
use super::words::{ENTRY, EXIT, FAULT, REGISTERS, What};

/// Offsets in `struct pt_regs` of x86-64, whose order is part of what the kernel promises to debuggers.
mod registers {
    /// From here on `r10`, `r9`, `r8`, `ax`, `cx`, `dx`, `si`, `di`.
    pub const FIRST: i16 = 56;
    /// The arguments of a system call, in their order.
    pub const ARGUMENTS: [i16; 6] = [112, 104, 96, 56, 72, 64];
    /// The number of the system call.
    pub const NUMBER: i16 = 120;
    /// The instruction.
    pub const INSTRUCTION: i16 = 128;
}

const R0: R = R(0);
const R1: R = R(1);
const R2: R = R(2);
const R3: R = R(3);
/// The context.
pub const CONTEXT: R = R(6);
/// The process and the thread.
pub const WHO: R = R(7);
/// Something that outlives a call.
const KEPT: R = R(9);
const STACK: R = R(10);

/// How a program gets at registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registers {
    /// It loads them, as the kernel knows what the tracepoint's argument is.
    Loaded,
    /// It has them copied.
    Copied,
}

/// Returns the program that records one kind of event. With `calls`, only of system calls of these numbers.
pub fn recording(what: What, registers: Registers, maps: &Maps, calls: &[i32]) -> Code {
    let mut code = Code::default();
    let end = code.label();
    code.copy(CONTEXT, R1);
    chosen(&mut code, what, registers, calls, end);
    code.call(Function::Current);
    code.copy(WHO, R0);
    if let Some(threads) = &maps.threads {
        code.copy_half(R1, WHO);
        find(&mut code, threads, R1, end);
        code.load(Size::Byte, R1, R2, 0);
        code.jump_if(R1, If::Less, i32::from(BEGUN), end);
    }
    let (kind, words) = match (what, registers) {
        (What::Entry, Registers::Loaded) => (What::Entry, ENTRY),
        (What::Entry, Registers::Copied) => (What::Registers, REGISTERS),
        (What::Exit, _) => (what, EXIT),
        _ => (What::Fault, FAULT),
    };
    room::record(&mut code, maps, Of { kind: kind as u8, words }, &|code| {
        code.store(Size::Double, RECORD, 8, WHO);
        body(code, what, registers);
    });
    code.here(end);
    code.set(R0, 0);
    code.exit();
    code
}

/// Passes over calls that are not chosen. Leaves the number of an exit's call on the stack if it was copied.
fn chosen(code: &mut Code, what: What, registers: Registers, calls: &[i32], end: Label) {
    match (what, registers) {
        (What::Entry, _) => code.load(Size::Double, R1, CONTEXT, 8),
        (What::Exit, Registers::Copied) => {
            from_registers(code, STACK, -16, registers::NUMBER, 8, 0);
            code.load(Size::Double, R1, STACK, -16);
        }
        (What::Exit, Registers::Loaded) if !calls.is_empty() => {
            code.load(Size::Double, R1, CONTEXT, 0);
            code.load(Size::Double, R1, R1, registers::NUMBER);
        }
        _ => return,
    }
    if calls.is_empty() {
        return;
    }
    let is = code.label();
    calls.iter().for_each(|call| code.jump_if(R1, If::Equal, *call, is));
    code.jump(end);
    code.here(is);
}

/// Copies registers of the thread, which argument `argument` of the tracepoint points at.
fn from_registers(code: &mut Code, to: R, at: i32, from: i16, bytes: i32, argument: i16) {
    code.copy(R1, to);
    code.add(R1, at);
    code.set(R2, bytes);
    code.load(Size::Double, R3, CONTEXT, argument * 8);
    code.add(R3, from.into());
    // What cannot be read is zeros.
    code.call(Function::Read);
}

/// Writes what a kind of record has.
fn body(code: &mut Code, what: What, registers: Registers) {
    let copied = registers == Registers::Copied;
    match what {
        What::Entry => {
            code.load(Size::Double, R1, CONTEXT, 8);
            code.store(Size::Word, RECORD, 20, R1);
            if copied {
                return from_registers(code, RECORD, 24, registers::FIRST, 64, 0);
            }
            code.load(Size::Double, R1, CONTEXT, 0);
            for (to, from) in (24..).step_by(8).zip(registers::ARGUMENTS) {
                code.load(Size::Double, R2, R1, from);
                code.store(Size::Double, RECORD, to, R2);
            }
        }
        What::Exit => {
            if copied {
                code.load(Size::Double, R1, STACK, -16);
            } else {
                code.load(Size::Double, R1, CONTEXT, 0);
                code.load(Size::Double, R1, R1, registers::NUMBER);
            }
            code.store(Size::Word, RECORD, 20, R1);
            code.load(Size::Double, R1, CONTEXT, 8);
            code.store(Size::Double, RECORD, 24, R1);
        }
        _ => {
            code.load(Size::Double, R1, CONTEXT, 0);
            code.store(Size::Double, RECORD, 24, R1);
            code.load(Size::Double, R1, CONTEXT, 16);
            code.store(Size::Word, RECORD, 20, R1);
            if copied {
                return from_registers(code, RECORD, 32, registers::INSTRUCTION, 8, 1);
            }
            code.load(Size::Double, R1, CONTEXT, 8);
            code.load(Size::Double, R1, R1, registers::INSTRUCTION);
            code.store(Size::Double, RECORD, 32, R1);
        }
    }
}

/// Finds the byte of the thread whose number is in a register: `r2` becomes its address. Goes on at a label if the
/// thread has none.
fn find(code: &mut Code, threads: &Threads, number: R, none: Label) {
    code.jump_if(number, If::NotLess, threads.size(), none);
    code.map_value(R2, threads.as_fd());
    code.add_register(R2, number);
}

/// Gives the thread that begins the value of its parent, which runs and whose number is in `r1`. The new one's is at
/// this offset from a register.
pub fn follow_child(code: &mut Code, maps: &Maps, threads: &Threads, (from, child): (R, i16)) {
    let (stranger, none) = (code.label(), code.label());
    find(code, threads, R1, stranger);
    code.load(Size::Byte, R3, R2, 0);
    code.jump_if(R3, If::Equal, 0, stranger);
    code.load(Size::Word, R1, from, child);
    find(code, threads, R1, none);
    code.store(Size::Byte, R2, 0, R3);
    code.jump(stranger);
    code.here(none);
    code.store_number(Size::Word, STACK, -4, maps.forgotten as i32);
    room::count(code, maps, stranger);
    code.here(stranger);
}

/// Returns the program for `sched_process_exec` where another records it.
pub fn exec(threads: &Threads) -> Code {
    alone(&|code| follow_exec(code, threads))
}

/// Returns the program for `sched_process_exit` where another records it.
pub fn exit(threads: &Threads) -> Code {
    alone(&|code| follow_exit(code, threads))
}

fn alone(follow: &dyn Fn(&mut Code)) -> Code {
    let mut code = Code::default();
    code.copy(CONTEXT, R1);
    follow(&mut code);
    code.set(R0, 0);
    code.exit();
    code
}

/// At `sched_process_exec`: a thread that was not the first of its process becomes it, and has another number than before.
pub fn follow_exec(code: &mut Code, threads: &Threads) {
    let (end, other, follows) = (code.label(), code.label(), code.label());
    code.load(Size::Double, R1, CONTEXT, 8);
    code.copy_half(WHO, R1);
    code.call(Function::Current);
    code.copy_half(RECORD, R0);
    find(code, threads, RECORD, end);
    code.load(Size::Byte, R3, R2, 0);
    code.jump_if(R3, If::Equal, 0, other);
    code.here(follows);
    code.store_number(Size::Byte, R2, 0, i32::from(BEGUN));
    code.jump(end);
    code.here(other);
    code.copy(KEPT, R2);
    find(code, threads, WHO, end);
    code.load(Size::Byte, R3, R2, 0);
    code.copy(R2, KEPT);
    code.jump_if(R3, If::Differs, 0, follows);
    code.here(end);
}

/// At `sched_process_exit`.
pub fn follow_exit(code: &mut Code, threads: &Threads) {
    let end = code.label();
    code.call(Function::Current);
    code.copy_half(R1, R0);
    find(code, threads, R1, end);
    code.store_number(Size::Byte, R2, 0, 0);
    code.here(end);
}
