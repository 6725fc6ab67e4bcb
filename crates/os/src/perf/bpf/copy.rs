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
use super::long;
use super::maps::Maps;
use super::programs::{self, CONTEXT, WHO};
use super::room::{self, Of, RECORD};
use super::words::{COPY, HEAD, MOST_TEXT, Whose};
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

#[cfg(test)]
mod tests {
    use super::super::kernel::{self, Kind};
    use super::*;

    const FIXED: &str = "name: a\nID: 7\nformat:\n\
        field:int common_pid;offset:4;size:4;signed:1;\n\
        field:u64 first;offset:8;size:8;signed:0;\n";
    /// Less than a word behind it.
    const REST: &str = "field:u32 a;offset:16;size:4;signed:0;\nfield:u16 b;offset:20;size:2;signed:0;\n\
        field:u8 c;offset:22;size:1;signed:0;\n";
    const TEXT: &str = "field:__data_loc char[] name;offset:16;size:4;signed:0;\n\
        field:__rel_loc char[] other;offset:20;size:4;signed:0;\n\
        field:u16 half;offset:24;size:2;signed:0;\nfield:u8 last;offset:26;size:1;signed:0;\n";

    fn copying(text: &str) -> Option<Copying> {
        Copying::of(&Layout::parse(text).unwrap())
    }

    #[test]
    fn a_record_ends_with_its_last_field_or_behind_it() {
        let fixed = copying(FIXED).unwrap();
        assert!(fixed.is_short());
        assert_eq!(fixed, Copying { bytes: 16, behind: vec![] });
        let text = copying(&format!("{FIXED}{TEXT}")).unwrap();
        assert!(!text.is_short());
        assert_eq!(text, Copying { bytes: 27, behind: vec![(16, 0), (20, 24)] });
        // One of 512 bytes is short, one of 4,096 is copied, and beyond there is none.
        let of =
            |end: usize| copying(&format!("{FIXED}field:char x[9];offset:{};size:9;signed:0;\n", end - 9));
        let short = [512, 513, 4096, 4097].map(|end| of(end).map(|copying| copying.is_short()));
        assert_eq!(short, [Some(true), Some(false), Some(false), None]);
        // No fields, and one that programs may not load.
        assert_eq!(copying("name: a\nID: 7\nformat:\n"), None);
        assert_eq!(copying("name: a\nID: 7\nfield:__data_loc char[] x;offset:18;size:4;signed:0;\n"), None);
    }

    /// Where they are refused perf records instead, and nobody would notice.
    #[test]
    fn the_kernel_takes_the_programs() {
        let (arena, arrays) =
            (Maps::make(&[0, 1, 2], 16 << 20, false, true), Maps::make(&[0], 1, true, true));
        let (Ok(arena), Ok(arrays)) = (arena, arrays) else {
            eprintln!("SKIPPED: this user may not make what programs write into");
            return;
        };
        let texts = [FIXED.to_owned(), format!("{FIXED}{TEXT}"), format!("{FIXED}{REST}")];
        for (text, maps) in texts.iter().flat_map(|text| [(text, &arena), (text, &arrays)]) {
            let code = copying(text).unwrap().program(3, maps, None).expect("memory");
            match kernel::program(Kind::Tracepoint, code) {
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => eprintln!("SKIPPED: {error}"),
                program => drop(program.expect("the kernel takes it")),
            }
        }
    }
}
