//! Records of any length: they are made in memory of the processor, and copied into the ring buffer as long as they are.

use std::os::fd::{AsFd, OwnedFd};

use super::code::{Code, Function, If, Label, R, Size};
use super::maps::Maps;
use super::room::{self, RECORD, WAKEUP};
use super::words::{PARTS, SHORT_WORDS, Whose};

/// Flag of a finished record: its reader is not woken.
const QUIET: i32 = 1;

const R0: R = R(0);
const R1: R = R(1);
const R2: R = R(2);
const R3: R = R(3);
const R4: R = R(4);
const STACK: R = R(10);

/// Begins a record with its time at [`RECORD`], in `scratch`. Goes on at a label if there is no memory. Uses four bytes of
/// the stack; registers 6, 7 and 9 stay as they are.
pub fn begin(code: &mut Code, scratch: &OwnedFd, whose: Whose, none: Label) {
    code.store_number(Size::Word, STACK, -4, whose as i32);
    code.map(R1, scratch.as_fd());
    code.copy(R2, STACK);
    code.add(R2, -4);
    code.call(Function::Lookup);
    code.jump_if(R0, If::Equal, 0, none);
    code.copy(RECORD, R0);
    // In front of a record in a ring buffer is the number of its CPU.
    code.call(Function::Cpu);
    code.store(Size::Double, RECORD, 0, R0);
    code.add(RECORD, 8);
    code.call(Function::Time);
    code.store(Size::Double, RECORD, 0, R0);
}

/// Ends a record of which `r0` has the bytes, a multiple of eight, and hands it over. Goes on at a label, also if there is no
/// room, which is counted.
pub fn end(code: &mut Code, kind: u8, maps: &Maps, end: Label) {
    code.copy(R3, R0);
    code.shift_right(R3, 3);
    code.store_number(Size::Word, RECORD, 16, i32::from(kind) | (SHORT_WORDS as i32) << 8);
    code.store(Size::Word, RECORD, 20, R3);
    code.store(Size::Double, STACK, -16, R0);
    // Its reader sleeps until a part of the ring buffer is filled, or for long.
    let quiet = code.label();
    code.map(R1, maps.ring.as_fd());
    code.set(R2, 0);
    code.call(Function::Query);
    code.set(R4, QUIET);
    code.jump_if(R0, If::Less, (maps.ring_size / PARTS) as i32, quiet);
    code.set(R4, WAKEUP);
    code.here(quiet);
    code.load(Size::Double, R3, STACK, -16);
    code.add(R3, 8);
    code.copy(R2, RECORD);
    code.add(R2, -8);
    code.map(R1, maps.ring.as_fd());
    code.call(Function::Output);
    code.jump_if(R0, If::Equal, 0, end);
    room::drop_one(code, maps, end);
}
