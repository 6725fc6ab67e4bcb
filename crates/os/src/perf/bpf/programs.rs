//! The programs: what the traced threads do themselves, and which threads these are.
//!
//! ```text
//!  threads: a byte for each number that a thread can have: 0 if it is not followed, 1 if it is, 2 once it or an
//!    ancestor has begun a program
//!    sched_wakeup_new gives the child its parent's value; exec stores 2; exit stores 0
//!
//!  a record in a CPU's ring buffer, words of eight bytes
//!    0 time    1 process (upper half) and thread    2 what it is    3 …
//!    entry     3 number of the call    4 r10 r9 r8 ax cx dx si di
//!    exit      3 number of the call    4 result
//!    fault     3 address    4 instruction    5 error code
//!    copy      3 the tracepoint's record, of which the first eight bytes are of no meaning
//! ```
//! Programs that cannot record something count it.
//!
//! Of programs at tracepoints of perf's the kernel runs one at a time on a CPU, and leaves out another that an
//! interrupt would begin meanwhile. So there are such only where interrupts are off: at switches and wake-ups. For
//! the same reason nobody makes system calls on maps while it is recorded, which keep these programs away as well:
//! numbers are read from memory that is shared with the kernel, and threads are followed by writing there.

use std::os::fd::{AsFd, OwnedFd};

use super::code::{Code, Function, If, Label, R, Size};
use super::threads::{BEGUN, Threads};

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A system call begins.
    Entry = 0,
    /// A system call ends.
    Exit = 1,
    /// A page of the program's memory is missing.
    Fault = 2,
}

/// What a record is that copies the first, the second and so on of some tracepoints' records.
pub const COPY: usize = 3;

/// Words of a record before those of its kind.
pub const HEAD: usize = 3;
/// Words of an entry.
pub const ENTRY: usize = 12;
/// Words of an exit.
pub const EXIT: usize = 5;
/// Words of a page fault.
pub const FAULT: usize = 6;
/// Bytes that a ring buffer has before each record.
const BEFORE: usize = 8;

/// Offsets in `struct pt_regs` of x86-64, whose order is part of what the kernel promises to debuggers.
mod registers {
    /// From here on `r10`, `r9`, `r8`, `ax`, `cx`, `dx`, `si`, `di`.
    pub const ARGUMENTS: i32 = 56;
    /// The number of the system call.
    pub const NUMBER: i32 = 120;
    /// The instruction.
    pub const INSTRUCTION: i32 = 128;
}

/// Numbers that programs ask for.
const AVAILABLE: i32 = 0;
/// Flags of a record that is finished.
const NO_WAKEUP: i32 = 1;
const WAKEUP: i32 = 2;

/// What the programs share.
#[derive(Debug)]
pub struct Maps {
    /// The threads, unless those of the whole machine are recorded.
    pub threads: Option<Threads>,
    /// By number of the CPU: how many records it had no room for. And how many threads have no place in `threads`.
    pub counts: OwnedFd,
    /// The place of the latter.
    pub forgotten: u32,
    /// A ring buffer for each CPU, by the CPU's number, which grows.
    pub rings: Vec<(u32, OwnedFd)>,
    /// Bytes of a ring buffer: a power of two.
    pub size: usize,
}

const R0: R = R(0);
const R1: R = R(1);
const R2: R = R(2);
const R3: R = R(3);
/// The context.
const CONTEXT: R = R(6);
/// The process and the thread.
const WHO: R = R(7);
/// The record.
const RECORD: R = R(8);
/// The ring buffer.
const RING: R = R(9);
const STACK: R = R(10);

/// Returns the program that records one kind of event. With `calls`, only of system calls of these numbers.
pub fn recording(what: What, maps: &Maps, calls: &[i32]) -> Code {
    let mut code = Code::default();
    let (end, full) = (code.label(), code.label());
    code.copy(CONTEXT, R1);
    chosen(&mut code, what, calls, end);
    code.call(Function::Current);
    code.copy(WHO, R0);
    if let Some(threads) = &maps.threads {
        code.copy_half(R1, WHO);
        find(&mut code, threads, R1, end);
        code.load(Size::Byte, R1, R2, 0);
        code.jump_if(R1, If::Less, i32::from(BEGUN), end);
    }
    let words = match what {
        What::Entry => ENTRY,
        What::Exit => EXIT,
        What::Fault => FAULT,
    };
    begin(&mut code, maps, what as usize, words, end, full);
    body(&mut code, what);
    submit(&mut code, maps.size, words);
    code.jump(end);
    code.here(full);
    drop_one(&mut code, maps, end);
    code.here(end);
    code.set(R0, 0);
    code.exit();
    code
}

/// Returns the program that copies records of this many bytes of a tracepoint of perf's, which has this place among
/// such. `child`: it is that of new threads, whose number is at this offset.
pub fn copying(place: usize, bytes: usize, maps: &Maps, child: Option<i16>) -> Code {
    let mut code = Code::default();
    let (end, full) = (code.label(), code.label());
    code.copy(CONTEXT, R1);
    code.call(Function::Current);
    code.copy(WHO, R0);
    if let (Some(child), Some(threads)) = (child, &maps.threads) {
        fork(&mut code, maps, threads, child);
    }
    let words = HEAD + bytes.div_ceil(8);
    begin(&mut code, maps, COPY + place, words, end, full);
    code.copy(R1, RECORD);
    code.add(R1, (HEAD * 8) as i32);
    code.set(R2, bytes as i32);
    code.copy(R3, CONTEXT);
    code.call(Function::Read);
    submit(&mut code, maps.size, words);
    code.jump(end);
    code.here(full);
    drop_one(&mut code, maps, end);
    code.here(end);
    // Others may record it by perf.
    code.set(R0, 1);
    code.exit();
    code
}

/// Makes room for a record, and writes when, who and what.
fn begin(code: &mut Code, maps: &Maps, kind: usize, words: usize, end: Label, full: Label) {
    ring(code, maps, end);
    code.copy(R1, RING);
    code.set(R2, (words * 8) as i32);
    code.set(R3, 0);
    code.call(Function::Reserve);
    code.jump_if(R0, If::Equal, 0, full);
    code.copy(RECORD, R0);
    code.call(Function::Time);
    code.store(Size::Double, RECORD, 0, R0);
    code.store(Size::Double, RECORD, 8, WHO);
    code.store_number(Size::Double, RECORD, 16, kind as i32);
}

/// Passes over calls that are not chosen. Leaves the number of an exit's call on the stack.
fn chosen(code: &mut Code, what: What, calls: &[i32], end: Label) {
    match what {
        What::Entry => code.load(Size::Double, R1, CONTEXT, 8),
        What::Exit => {
            from_registers(code, STACK, -16, registers::NUMBER, 8, 0);
            code.load(Size::Double, R1, STACK, -16);
        }
        What::Fault => return,
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
fn from_registers(code: &mut Code, to: R, at: i32, from: i32, bytes: i32, argument: i16) {
    code.copy(R1, to);
    code.add(R1, at);
    code.set(R2, bytes);
    code.load(Size::Double, R3, CONTEXT, argument * 8);
    code.add(R3, from);
    // What cannot be read is zeros.
    code.call(Function::Read);
}

/// Writes what a kind of record has.
fn body(code: &mut Code, what: What) {
    match what {
        What::Entry => {
            code.load(Size::Double, R1, CONTEXT, 8);
            code.store(Size::Double, RECORD, 24, R1);
            from_registers(code, RECORD, 32, registers::ARGUMENTS, 64, 0);
        }
        What::Exit => {
            code.load(Size::Double, R1, STACK, -16);
            code.store(Size::Double, RECORD, 24, R1);
            code.load(Size::Double, R1, CONTEXT, 8);
            code.store(Size::Double, RECORD, 32, R1);
        }
        What::Fault => {
            code.load(Size::Double, R1, CONTEXT, 0);
            code.store(Size::Double, RECORD, 24, R1);
            code.load(Size::Double, R1, CONTEXT, 16);
            code.store(Size::Double, RECORD, 40, R1);
            from_registers(code, RECORD, 32, registers::INSTRUCTION, 8, 1);
        }
    }
}

/// Finds the ring buffer of this CPU. One that came later than recording began has none.
fn ring(code: &mut Code, maps: &Maps, end: Label) {
    code.call(Function::Cpu);
    let found = code.label();
    choose(code, &maps.rings, end, found);
    code.here(found);
}

/// Halves the choice until one is left.
fn choose(code: &mut Code, rings: &[(u32, OwnedFd)], end: Label, found: Label) {
    match rings {
        [] => code.jump(end),
        [(cpu, ring)] => {
            code.jump_if(R0, If::Differs, *cpu as i32, end);
            code.map(RING, ring.as_fd());
            code.jump(found);
        }
        _ => {
            let (low, high) = rings.split_at(rings.len() / 2);
            let lower = code.label();
            code.jump_if(R0, If::Less, high[0].0 as i32, lower);
            choose(code, high, end, found);
            code.here(lower);
            choose(code, low, end, found);
        }
    }
}

/// Hands the record over. Its reader is woken whenever another quarter of the buffer is filled: by the record
/// that is the first in it.
fn submit(code: &mut Code, size: usize, words: usize) {
    let quiet = code.label();
    code.copy(R1, RING);
    code.set(R2, AVAILABLE);
    code.call(Function::Query);
    code.and(R0, (size / 4 - 1) as i32);
    code.copy(R1, RECORD);
    code.set(R2, NO_WAKEUP);
    code.set(R3, (words * 8 + BEFORE) as i32);
    let loud = code.label();
    code.jump_if_less(R0, R3, loud);
    code.jump(quiet);
    code.here(loud);
    code.set(R2, WAKEUP);
    code.here(quiet);
    code.call(Function::Submit);
}

/// Finds the byte of the thread whose number is in a register: `r2` becomes its address. Goes on at a label if the
/// thread has none.
fn find(code: &mut Code, threads: &Threads, number: R, none: Label) {
    code.jump_if(number, If::NotLess, threads.size(), none);
    code.map_value(R2, threads.as_fd());
    code.add_register(R2, number);
}

/// Counts a record that there was no room for.
fn drop_one(code: &mut Code, maps: &Maps, end: Label) {
    code.call(Function::Cpu);
    code.store(Size::Word, STACK, -4, R0);
    count(code, maps, end);
}

/// Adds one to the number whose place is at -4 of the stack.
fn count(code: &mut Code, maps: &Maps, end: Label) {
    code.map(R1, maps.counts.as_fd());
    code.copy(R2, STACK);
    code.add(R2, -4);
    code.call(Function::Lookup);
    code.jump_if(R0, If::Equal, 0, end);
    code.set(R1, 1);
    code.add_atomically(R0, 0, R1);
}

/// Gives the thread that begins its parent's value, which runs: its number is at this offset of the record.
fn fork(code: &mut Code, maps: &Maps, threads: &Threads, child: i16) {
    let (stranger, none) = (code.label(), code.label());
    code.copy_half(R1, WHO);
    find(code, threads, R1, stranger);
    code.load(Size::Byte, R3, R2, 0);
    code.jump_if(R3, If::Equal, 0, stranger);
    code.load(Size::Word, R1, CONTEXT, child);
    find(code, threads, R1, none);
    code.store(Size::Byte, R2, 0, R3);
    code.jump(stranger);
    code.here(none);
    code.store_number(Size::Word, STACK, -4, maps.forgotten as i32);
    count(code, maps, stranger);
    code.here(stranger);
}

/// Returns the program for `sched_process_exec`: a thread that was not the first of its process becomes it, and has
/// another number than before.
pub fn exec(threads: &Threads) -> Code {
    let mut code = Code::default();
    let (end, other, follows) = (code.label(), code.label(), code.label());
    code.load(Size::Double, R1, R1, 8);
    code.copy_half(WHO, R1);
    code.call(Function::Current);
    code.copy_half(RECORD, R0);
    find(&mut code, threads, RECORD, end);
    code.load(Size::Byte, R3, R2, 0);
    code.jump_if(R3, If::Equal, 0, other);
    code.here(follows);
    code.store_number(Size::Byte, R2, 0, i32::from(BEGUN));
    code.jump(end);
    code.here(other);
    code.copy(RING, R2);
    find(&mut code, threads, WHO, end);
    code.load(Size::Byte, R3, R2, 0);
    code.copy(R2, RING);
    code.jump_if(R3, If::Differs, 0, follows);
    code.here(end);
    code.set(R0, 0);
    code.exit();
    code
}

/// Returns the program for `sched_process_exit`.
pub fn exit(threads: &Threads) -> Code {
    let mut code = Code::default();
    let end = code.label();
    code.call(Function::Current);
    code.copy_half(R1, R0);
    find(&mut code, threads, R1, end);
    code.store_number(Size::Byte, R2, 0, 0);
    code.here(end);
    code.set(R0, 0);
    code.exit();
    code
}
