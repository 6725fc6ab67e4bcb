//! Programs that copy the record of a tracepoint of perf's, whatever fields it has: they run at the tracepoint of one event of
//! perf's that is not enabled, on all CPUs.
//!
//! ```text
//!  context: 0 of the kernel's own    8 the record's fields, and behind them what their __data_loc and __rel_loc say
//! ```
//! How long the record is no context says: it ends with the last field, or with what a field says stands behind the fields.
//! Of such programs the kernel runs one at a time on a CPU; what one misses that interrupts another it counts.

use std::os::fd::OwnedFd;

use super::code::{Code, Function, If, Label, R, Size};
use super::long::{self, Whose};
use super::maps::Maps;
use super::programs::{self, CONTEXT, WHO};
use super::room::{self, Of, RECORD};
use super::words::{COPY, HEAD, MOST_TEXT};
use crate::layout::{Form, Layout};

/// Bytes of a copied record that are of no meaning: of the fields common to all tracepoints.
pub const MEANINGLESS: usize = 8;
/// Longest record that is copied into a CPU's buffer, in bytes; such have one length.
const LONGEST: usize = 512;

const R0: R = R(0);
const R1: R = R(1);
const R2: R = R(2);
const R3: R = R(3);
/// How many bytes the record has.
const LENGTH: R = R(9);

/// What is copied of a tracepoint's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copying {
    /// Bytes of all fields.
    pub bytes: usize,
    /// The fields that say what stands behind them: where they are, and where that is counted from.
    behind: Vec<(i16, i16)>,
}

impl Copying {
    /// Returns what is copied of records of this layout; none if they have no fields, or more than a program copies.
    pub fn of(layout: &Layout) -> Option<Self> {
        let mut behind = Vec::new();
        for field in &layout.fields {
            let Form::Elsewhere { relative } = field.form else { continue };
            // The kernel lets programs load what is at a multiple of its size.
            let at =
                i16::try_from(field.offset).ok().filter(|at| at % 4 == 0 && *at >= MEANINGLESS as i16)?;
            behind.push((at, if relative { at + 4 } else { 0 }));
        }
        let bytes = layout.fields.iter().map(|field| field.offset + field.size).max()?;
        (MEANINGLESS + 1..=MOST_TEXT).contains(&bytes).then_some(Self { bytes, behind })
    }

    /// Returns whether all records have one length and are short.
    pub fn is_short(&self) -> bool {
        self.behind.is_empty() && self.bytes <= LONGEST
    }

    /// Returns the program of the tracepoint that has this place among those that are copied. `child`: it is that of new
    /// threads, whose number is at this offset. Returns none if there is no memory to make records in.
    pub fn program(&self, place: u8, maps: &Maps, child: Option<i16>) -> Option<Code> {
        let mut code = Code::default();
        code.copy(CONTEXT, R1);
        code.call(Function::Current);
        code.copy(WHO, R0);
        if let (Some(child), Some(threads)) = (child, &maps.threads) {
            code.copy_half(R1, WHO);
            programs::follow_child(&mut code, maps, threads, (CONTEXT, child));
        }
        if self.is_short() {
            self.short(&mut code, place, maps);
        } else {
            self.long(&mut code, place, maps, maps.scratch.as_ref()?);
        }
        // Others may record it by perf.
        code.set(R0, 1);
        code.exit();
        Some(code)
    }

    /// Loads the fields, as there is no function that writes into an arena.
    fn short(&self, code: &mut Code, place: u8, maps: &Maps) {
        let of = Of { kind: COPY + place, words: HEAD + self.bytes.div_ceil(8) };
        room::record(code, maps, of, &|code| {
            code.store(Size::Double, RECORD, 8, WHO);
            for at in (0..self.bytes).step_by(8) {
                let to = (HEAD * 8 + at) as i16;
                match self.bytes - at {
                    _ if at < MEANINGLESS => code.store_number(Size::Double, RECORD, to, 0),
                    8.. => load(code, Size::Double, to, at as i16),
                    rest => {
                        code.store_number(Size::Double, RECORD, to, 0);
                        rest_of(code, rest, to, at as i16);
                    }
                }
            }
        });
    }

    fn long(&self, code: &mut Code, place: u8, maps: &Maps, scratch: &OwnedFd) {
        let (end, lost) = (code.label(), code.label());
        self.length(code);
        code.jump_if(LENGTH, If::NotLess, MOST_TEXT as i32 + 1, lost);
        code.add(LENGTH, 7);
        code.and(LENGTH, 0xfff8);
        long::begin(code, scratch, Whose::Perf, lost);
        code.store(Size::Double, RECORD, 8, WHO);
        code.copy(R1, RECORD);
        code.add(R1, (HEAD * 8) as i32);
        code.copy(R2, LENGTH);
        code.copy(R3, CONTEXT);
        // What cannot be read is zeros.
        code.call(Function::Read);
        code.copy(R0, LENGTH);
        code.add(R0, (HEAD * 8) as i32);
        long::end(code, COPY + place, maps, end);
        code.jump(end);
        code.here(lost);
        room::drop_one(code, maps, end);
        code.here(end);
    }

    /// Finds how long the record is.
    fn length(&self, code: &mut Code) {
        code.set(LENGTH, self.bytes as i32);
        for (at, from) in &self.behind {
            let next: Label = code.label();
            code.load(Size::Word, R1, CONTEXT, *at);
            code.copy(R2, R1);
            code.shift_right(R2, 16);
            code.and(R1, 0xffff);
            code.add_register(R1, R2);
            code.add(R1, i32::from(*from));
            code.jump_if_greater(LENGTH, R1, next);
            code.copy(LENGTH, R1);
            code.here(next);
        }
    }
}

fn load(code: &mut Code, size: Size, to: i16, from: i16) {
    code.load(size, R1, CONTEXT, from);
    code.store(size, RECORD, to, R1);
}

/// Loads less than a word: behind the last field a program may load nothing.
fn rest_of(code: &mut Code, rest: usize, mut to: i16, mut from: i16) {
    for (size, bytes) in [(Size::Word, 4), (Size::Half, 2), (Size::Byte, 1)] {
        if rest & bytes != 0 {
            load(code, size, to, from);
            to += bytes as i16;
            from += bytes as i16;
        }
    }
}
