//! Where the members are that are read, in each version of CPython on x86-64.
//!
//! Up to 3.12 they are as the public headers of the version have them, in its release build; they do not change within
//! a version once that is released. Since 3.13 the interpreter has them itself, in a table at the beginning of
//! `_PyRuntime` (`_Py_DebugOffsets`); where the words of that table are depends on the version again.

use super::lines::Form;
use super::memory::Memory;

/// Where a version has what is read. Offsets are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// `_PyRuntime`: the thread state that finalizes it, or NULL.
    pub finalizing: usize,
    /// `_PyRuntime`: the first interpreter.
    pub interpreters: usize,
    /// An interpreter: the next one; of none where a thread's state says which interpreter it is in.
    pub next_interpreter: Option<usize>,
    /// A thread state: its interpreter.
    pub interpreter: usize,
    /// A thread state: the `pthread_t` of its thread.
    pub thread: usize,
    /// A thread state: the innermost frame, or what says it.
    pub frame: usize,
    /// What says it: the innermost frame.
    pub frame_of: Option<usize>,
    /// A frame: the one around it.
    pub previous: usize,
    /// A frame: its code object; in the two lowest bits may be a mark.
    pub code: usize,
    /// A frame: where it is.
    pub place: usize,
    /// What that is.
    pub places: Places,
    /// A code object: the name of its file.
    pub file: usize,
    /// A code object: its qualified name; its name up to 3.10.
    pub name: usize,
    /// A code object: its first line.
    pub first_line: usize,
    /// A code object: the table of its lines.
    pub lines: usize,
    /// The form of that.
    pub form: Form,
    /// A string: bytes before the text, where that is ASCII.
    pub ascii: usize,
    /// A string: bytes before any other text.
    pub compact: usize,
}

/// How a frame says which instruction it is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    /// The instruction's number in 32 bits, which is to be multiplied by this; -1 before the first.
    Numbers {
        /// Bytes that each stands for.
        bytes: i32,
    },
    /// Its address.
    Addresses {
        /// A frame: who owns it, a byte.
        owner: usize,
        /// A code object: its instructions.
        instructions: usize,
        /// A code object: the number of the first instruction of its own, of two bytes each.
        first: usize,
    },
}

/// An object: its type.
pub(super) const TYPE: usize = 8;
/// An object of varying size: how many elements it has.
pub(super) const SIZE: usize = 16;
/// `bytes`: the content.
pub(super) const BYTES: usize = 32;
/// A string: how long it is.
pub(super) const LENGTH: usize = 16;
/// A string: how its content is stored, 32 bits.
pub(super) const STATE: usize = 32;
/// Between a code object's first instruction of its own and its instructions, since 3.11.
const FIRST_BEFORE: usize = 16;

/// First bytes of the table of offsets.
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");

/// Why an interpreter is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Of a version that is not known.
    Version,
    /// It has no global lock, and other structures.
    FreeThreaded,
    /// Its table of offsets is not as expected.
    Offsets,
}

impl Layout {
    /// Returns the layout of a version, `_PyRuntime` being at `runtime`.
    pub fn of(minor: u32, version: u32, runtime: usize) -> Result<Self, Refused> {
        match minor {
            9 => Ok(V3_9),
            10 => Ok(V3_10),
            11 => Ok(V3_11),
            12 => Ok(V3_12),
            13 => Self::of_table(runtime, version, &TABLE_3_13),
            14 => Self::of_table(runtime, version, &TABLE_3_14),
            _ => Err(Refused::Version),
        }
    }

    fn of_table(runtime: usize, version: u32, words: &Words) -> Result<Self, Refused> {
        let word = |index: usize| Memory::<true>.read::<u64>(runtime + 8 * index).ok_or(Refused::Offsets);
        if word(0)? != COOKIE || word(1)? != u64::from(version) {
            return Err(Refused::Offsets);
        }
        if word(2)? != 0 {
            return Err(Refused::FreeThreaded);
        }
        // None of these structures is as large as that.
        let offset = |index| match word(index)? {
            offset @ 0..0x10_0000 => Ok(offset as usize),
            _ => Err(Refused::Offsets),
        };
        let instructions = offset(words.instructions)?;
        let first = instructions.checked_sub(FIRST_BEFORE).ok_or(Refused::Offsets)?;
        Ok(Self {
            finalizing: offset(4)?,
            interpreters: offset(5)?,
            next_interpreter: None,
            interpreter: offset(words.thread_state + 3)?,
            frame: offset(words.thread_state + 4)?,
            thread: offset(words.thread_state + 5)?,
            frame_of: None,
            previous: offset(words.frame + 1)?,
            code: offset(words.frame + 2)?,
            place: offset(words.frame + 3)?,
            places: Places::Addresses { owner: offset(words.frame + 5)?, instructions, first },
            file: offset(words.code + 1)?,
            name: offset(words.code + 3)?,
            lines: offset(words.code + 4)?,
            first_line: offset(words.code + 5)?,
            form: Form::Entries,
            ascii: 40,
            compact: 56,
        })
    }
}

/// Which words of the table begin the groups of what is read; members of a group are in the same order in all versions.
#[derive(Debug)]
struct Words {
    thread_state: usize,
    frame: usize,
    code: usize,
    instructions: usize,
}

const TABLE_3_13: Words = Words { thread_state: 19, frame: 28, code: 34, instructions: 43 };
const TABLE_3_14: Words = Words { thread_state: 22, frame: 31, code: 39, instructions: 48 };

const V3_9: Layout = Layout {
    finalizing: 16,
    interpreters: 32,
    next_interpreter: Some(0),
    interpreter: 16,
    thread: 176,
    frame: 24,
    frame_of: None,
    previous: 24,
    code: 32,
    place: 104,
    places: Places::Numbers { bytes: 1 },
    file: 104,
    name: 112,
    first_line: 40,
    lines: 120,
    form: Form::Pairs,
    ascii: 48,
    compact: 72,
};

const V3_10: Layout = Layout { place: 96, places: Places::Numbers { bytes: 2 }, form: Form::Ranges, ..V3_9 };

const V3_11: Layout = Layout {
    finalizing: 24,
    interpreters: 40,
    thread: 152,
    frame: 56,
    frame_of: Some(8),
    previous: 48,
    code: 32,
    place: 56,
    places: Places::Addresses { owner: 69, instructions: 184, first: 168 },
    file: 112,
    name: 128,
    first_line: 72,
    lines: 136,
    form: Form::Entries,
    ..V3_9
};

const V3_12: Layout = Layout {
    next_interpreter: None,
    thread: 136,
    frame_of: Some(0),
    previous: 8,
    code: 0,
    places: Places::Addresses { owner: 70, instructions: 192, first: 176 },
    first_line: 68,
    ascii: 40,
    compact: 56,
    ..V3_11
};
