//! Where a program writes its record: the buffer of its CPU, or the ring buffer beside it.
//!
//! ```text
//!  busy? ── no ──► busy = 1, write at head, head += its length, busy = 0
//!        └─ yes ─► another program is interrupted here: a record in the ring buffer
//! ```
//! To make room in a ring buffer of BPF's and to hand it over are two calls and a lock, more than all that a record has.
//! Here it takes a few loads and stores, as one CPU's programs write one behind the other. Those that interrupt one find
//! it busy. The ring buffer also wakes the reader, as an array cannot: by a record of [`MARK`] whenever another quarter
//! of the buffer is filled.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::code::{Code, Function, If, Label, R, Size};
use super::maps::{Kept, Maps};
use super::words::{
    BUSY_AT, DATA_AT, DROPPED_AT, HEAD, HEAD_AT, MARK, MASK_AT, PARTS_BITS, TAIL_AT, WANTED_AT,
};

/// Flag of a finished record: its reader is woken.
pub const WAKEUP: i32 = 2;

const R0: R = R(0);
const R1: R = R(1);
const R2: R = R(2);
const R3: R = R(3);
/// The record.
pub const RECORD: R = R(8);
/// The buffer or the ring buffer.
const PLACE: R = R(9);
const STACK: R = R(10);

/// What of a record is known when the program is written.
#[derive(Debug, Clone, Copy)]
pub struct Of {
    /// What it is.
    pub kind: u8,
    /// Its words.
    pub words: usize,
}

impl Of {
    fn bytes(self) -> i32 {
        (self.words * 8) as i32
    }
}

/// Writes a record with its time and kind; `body` writes the rest, who it was first, at [`RECORD`]. Registers 6 and 7
/// stay as they are.
pub fn record(code: &mut Code, maps: &Maps, of: Of, body: &dyn Fn(&mut Code)) {
    let (end, nested, full, more) = (code.label(), code.label(), code.label(), code.label());
    code.call(Function::Cpu);
    choose(code, &maps.buffers, nested);
    code.load(Size::Double, R3, PLACE, WANTED_AT);
    code.jump_if(R3, If::Equal, 0, nested);
    code.load(Size::Double, R1, PLACE, BUSY_AT);
    code.jump_if(R1, If::Differs, 0, nested);
    // From here on an interrupt keeps away: what it may have written before moved the head.
    code.store_number(Size::Double, PLACE, BUSY_AT, 1);
    code.load(Size::Double, RECORD, PLACE, HEAD_AT);
    code.load(Size::Double, R1, PLACE, TAIL_AT);
    code.copy(R2, RECORD);
    code.subtract(R2, R1);
    code.jump_if(R2, If::Differs, 0, more);
    // It is empty: the reader may have made it larger.
    code.store(Size::Double, PLACE, MASK_AT, R3);
    code.here(more);
    code.load(Size::Double, R3, PLACE, MASK_AT);
    code.add(R2, of.bytes() - 1);
    code.jump_if_greater(R2, R3, full);
    code.and_register(RECORD, R3);
    // The kernel does not know what the mask is.
    code.and(RECORD, maps.size as i32 - 1);
    code.copy(R1, PLACE);
    code.add_register(R1, RECORD);
    code.add(R1, DATA_AT);
    code.copy(RECORD, R1);
    write(code, of, body);
    // The processor shows stores in their order (x86-64).
    code.load(Size::Double, R1, PLACE, HEAD_AT);
    code.add(R1, of.bytes());
    code.store(Size::Double, PLACE, HEAD_AT, R1);
    code.load(Size::Double, R2, PLACE, MASK_AT);
    code.store_number(Size::Double, PLACE, BUSY_AT, 0);
    code.shift_right(R2, PARTS_BITS);
    code.and_register(R1, R2);
    code.jump_if(R1, If::NotLess, of.bytes(), end);
    let mark = Of { kind: MARK, words: HEAD };
    in_ring(code, maps, mark, WAKEUP, end, &|code| code.store_number(Size::Double, RECORD, 8, 0));
    code.jump(end);
    code.here(full);
    code.load(Size::Double, R1, PLACE, DROPPED_AT);
    code.add(R1, 1);
    code.store(Size::Double, PLACE, DROPPED_AT, R1);
    code.store_number(Size::Double, PLACE, BUSY_AT, 0);
    code.jump(end);
    code.here(nested);
    let lost = code.label();
    in_ring(code, maps, of, 0, lost, body);
    code.jump(end);
    code.here(lost);
    drop_one(code, maps, end);
    code.here(end);
}

/// Writes time and kind, and the rest.
fn write(code: &mut Code, of: Of, body: &dyn Fn(&mut Code)) {
    code.call(Function::Time);
    code.store(Size::Double, RECORD, 0, R0);
    code.store_number(Size::Half, RECORD, 16, i32::from(of.kind) | (of.words as i32) << 8);
    body(code);
}

/// Writes a record into the ring buffer. Goes on at a label if there is no room.
fn in_ring(code: &mut Code, maps: &Maps, of: Of, flags: i32, lost: Label, body: &dyn Fn(&mut Code)) {
    code.map(R1, maps.ring.as_fd());
    code.set(R2, of.bytes() + 8);
    code.set(R3, 0);
    code.call(Function::Reserve);
    code.jump_if(R0, If::Equal, 0, lost);
    code.copy(PLACE, R0);
    code.copy(RECORD, R0);
    code.add(RECORD, 8);
    code.call(Function::Cpu);
    code.store(Size::Double, PLACE, 0, R0);
    write(code, of, body);
    code.copy(R1, PLACE);
    code.set(R2, flags);
    code.call(Function::Submit);
}

/// Finds the buffer of the CPU whose number is in `r0`. Goes on at a label if there is none: it came later than recording
/// began.
fn choose(code: &mut Code, buffers: &Kept, none: Label) {
    match buffers {
        Kept::Nothing => code.jump(none),
        Kept::Arena(arena) => {
            code.jump_if(R0, If::NotLess, arena.cpus() as i32, none);
            // So that the kernel knows which arena is meant.
            code.map(R1, arena.as_fd());
            code.copy_half(PLACE, R0);
            code.multiply_half(PLACE, arena.stride() as i32);
            code.add_half(PLACE, arena.address().cast_signed());
            code.in_arena(PLACE);
        }
        Kept::Arrays(arrays) => {
            let found = code.label();
            halve(code, arrays, &Code::map_value, (none, found));
            code.here(found);
        }
    }
}

/// Halves the choice until one is left.
fn halve(
    code: &mut Code,
    places: &[(u32, OwnedFd)],
    put: &dyn Fn(&mut Code, R, BorrowedFd<'_>),
    (none, found): (Label, Label),
) {
    match places {
        [] => code.jump(none),
        [(cpu, place)] => {
            code.jump_if(R0, If::Differs, *cpu as i32, none);
            put(code, PLACE, place.as_fd());
            code.jump(found);
        }
        _ => {
            let (low, high) = places.split_at(places.len() / 2);
            let lower = code.label();
            code.jump_if(R0, If::Less, high[0].0 as i32, lower);
            halve(code, high, put, (none, found));
            code.here(lower);
            halve(code, low, put, (none, found));
        }
    }
}

/// Counts a record that there was no room for.
pub fn drop_one(code: &mut Code, maps: &Maps, end: Label) {
    code.call(Function::Cpu);
    code.store(Size::Word, STACK, -4, R0);
    count(code, maps, end);
}

/// Adds one to the number whose place is at -4 of the stack.
pub fn count(code: &mut Code, maps: &Maps, end: Label) {
    code.map(R1, maps.counts.as_fd());
    code.copy(R2, STACK);
    code.add(R2, -4);
    code.call(Function::Lookup);
    code.jump_if(R0, If::Equal, 0, end);
    code.set(R1, 1);
    code.add_atomically(R0, 0, R1);
}
