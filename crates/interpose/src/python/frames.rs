//! The frames of this thread, as its interpreter has them.

use super::layout::{self, Layout, Places};
use super::lines;
use super::memory::{Memory, is_object};
use crate::hash;

/// What an interpreter is, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interpreter {
    pub layout: Layout,
    /// `_PyRuntime`.
    pub runtime: usize,
    /// `PyCode_Type`.
    pub code: usize,
    /// `PyUnicode_Type`.
    pub text: usize,
    /// `PyBytes_Type`.
    pub bytes: usize,
}

/// So many frames of a stack are held at a time: the stack of the program may be small.
const CHUNK: usize = 64;
/// Frames of a stack that is recorded, at most.
const DEEPEST: usize = 1 << 14;
/// Frames that are passed over, at most: those by which C enters the interpreter lie between others.
const PASSED: usize = 2 * DEEPEST;
/// Owners of frames: a generator has begun, if it has one.
const GENERATOR: u8 = 1;
/// From here on frames are not of Python code, but of how C enters the interpreter.
const NOT_PYTHON: u8 = 3;
/// The last owner that there is.
const LAST_OWNER: u8 = 4;
/// A code object, a string or a table of lines longer than this is none.
const LONGEST: usize = 1 << 28;

/// Why a stack is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The structures are not as expected.
    Odd,
    /// It is deeper than what is recorded.
    Deep,
    /// Which interpreter of several the thread runs is not said by this version.
    Several,
    /// The interpreter is being finalized by another thread.
    Ending,
}

/// A frame of Python code: its code object, and how many bytes of instructions lie before the one that it is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Frame {
    pub code: usize,
    pub offset: i32,
}

/// A string of the interpreter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'m> {
    /// As it is stored: each character in as many bytes as `width` says.
    pub bytes: &'m [u8],
    /// 1, 2 or 4.
    pub width: usize,
}

/// What a code object says of itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code<'m> {
    pub file: Text<'m>,
    pub name: Text<'m>,
    pub first_line: i32,
    lines: &'m [u8],
}

impl Code<'_> {
    /// A hash of all of it.
    pub fn hash(&self) -> u64 {
        let file = hash::add(self.file.width as u64, self.file.bytes);
        let name = hash::add(file ^ self.name.width as u64, self.name.bytes);
        hash::add(hash::mix(name, u64::from(self.first_line.cast_unsigned())), self.lines)
    }

    /// The line of an instruction; 0 if it has none.
    pub fn line(&self, interpreter: &Interpreter, offset: i32) -> i32 {
        lines::line(interpreter.layout.form, self.lines, self.first_line, offset)
    }
}

impl Interpreter {
    /// Returns the innermost frame of a thread's state; 0 if it runs no Python code.
    pub fn innermost<const C: bool>(
        &self,
        memory: Memory<C>,
        state: usize,
        thread: u64,
    ) -> Result<usize, Unknown> {
        let layout = &self.layout;
        let word = |at: usize| memory.pointer(at).ok_or(Unknown::Odd);
        let finalizing = word(self.runtime + layout.finalizing)?;
        if finalizing != 0 && finalizing != state {
            return Err(Unknown::Ending);
        }
        if memory.read::<u64>(state + layout.thread) != Some(thread) {
            return Err(Unknown::Odd);
        }
        if let Some(next) = layout.next_interpreter {
            // The thread's own state is the first that it had. Which of several it runs, only the global lock says.
            let interpreter = memory.object(state + layout.interpreter).ok_or(Unknown::Odd)?;
            if word(self.runtime + layout.interpreters)? != interpreter || word(interpreter + next)? != 0 {
                return Err(Unknown::Several);
            }
        }
        let first = word(state + layout.frame)?;
        match layout.frame_of {
            Some(_) if first == 0 => Ok(0),
            Some(offset) => word(first + offset),
            None => Ok(first),
        }
    }

    /// Returns a frame, none if it is not of Python code, or has not begun; and the address of the one around it.
    #[inline(always)]
    fn frame<const C: bool>(&self, memory: Memory<C>, at: usize) -> Option<(Option<Frame>, usize)> {
        let layout = &self.layout;
        let around = memory.pointer(at + layout.previous)?;
        let owner = match layout.places {
            Places::Addresses { owner, .. } => memory.read::<u8>(at + owner)?,
            Places::Numbers { .. } => 0,
        };
        if owner > LAST_OWNER {
            return None;
        }
        if owner >= NOT_PYTHON {
            return Some((None, around));
        }
        let code = memory.read::<usize>(at + layout.code)? & !3;
        if !is_object(code) || memory.read::<usize>(code + layout::TYPE)? != self.code {
            return None;
        }
        let offset = match layout.places {
            Places::Numbers { bytes } => memory.read::<i32>(at + layout.place)?.checked_mul(bytes)?,
            Places::Addresses { instructions, first, .. } => {
                let place = memory.read::<usize>(at + layout.place)?;
                let offset = place.wrapping_sub(code + instructions).cast_signed();
                let own = 2 * memory.read::<i32>(code + first)? as isize;
                if owner != GENERATOR && offset < own {
                    return Some((None, around)); // It is being made.
                }
                let units = memory.read::<usize>(code + layout::SIZE)?;
                if units > LONGEST || offset < -2 || offset >= 2 * units.cast_signed() {
                    return None;
                }
                offset as i32
            }
        };
        Some((Some(Frame { code, offset }), around))
    }

    /// Goes from the frame at `at` to the outermost, and shows each of Python code with its number, the innermost being
    /// number 0. Returns how many there are.
    fn each_inwards<const C: bool>(
        &self,
        memory: Memory<C>,
        mut at: usize,
        mut show: impl FnMut(usize, Frame),
    ) -> Result<usize, Unknown> {
        let (mut count, mut passed) = (0, 0);
        while at != 0 {
            let (frame, around) = self.frame(memory, at).ok_or(Unknown::Odd)?;
            if let Some(frame) = frame {
                show(count, frame);
                count += 1;
            }
            passed += 1;
            if count > DEEPEST || passed > PASSED {
                return Err(Unknown::Deep);
            }
            at = around;
        }
        Ok(count)
    }

    /// Shows all frames of Python code, the outermost first. Deep stacks are gone through several times: each frame
    /// knows only the one around it.
    pub fn each<const C: bool>(
        &self,
        memory: Memory<C>,
        innermost: usize,
        mut show: impl FnMut(Frame) -> Option<()>,
    ) -> Result<(), Unknown> {
        let mut chunk = [Frame::default(); CHUNK];
        let take = |from: usize, chunk: &mut [Frame; CHUNK]| {
            self.each_inwards(memory, innermost, |number, frame| {
                if let Some(place) = number.checked_sub(from).and_then(|at| chunk.get_mut(at)) {
                    *place = frame;
                }
            })
        };
        let all = take(0, &mut chunk)?;
        let mut left = all;
        while left > 0 {
            let from = (left - 1) / CHUNK * CHUNK;
            // The first time went over all of them, and has the innermost ones.
            if all > CHUNK && take(from, &mut chunk)? != all {
                return Err(Unknown::Odd);
            }
            for frame in chunk.iter().take(left - from).rev() {
                show(*frame).ok_or(Unknown::Odd)?;
            }
            left = from;
        }
        Ok(())
    }

    /// Returns what a code object says of itself.
    #[inline(always)]
    pub fn describe<'m, const C: bool>(&self, memory: Memory<C>, code: usize) -> Option<Code<'m>> {
        let layout = &self.layout;
        let table = memory.object(code + layout.lines)?;
        if memory.read::<usize>(table + layout::TYPE)? != self.bytes {
            return None;
        }
        let length = memory.read::<usize>(table + layout::SIZE).filter(|length| *length < LONGEST)?;
        Some(Code {
            file: self.string(memory, memory.object(code + layout.file)?)?,
            name: self.string(memory, memory.object(code + layout.name)?)?,
            first_line: memory.read(code + layout.first_line)?,
            lines: memory.bytes(table + layout::BYTES, length)?,
        })
    }

    #[inline(always)]
    fn string<'m, const C: bool>(&self, memory: Memory<C>, at: usize) -> Option<Text<'m>> {
        if memory.read::<usize>(at + layout::TYPE)? != self.text {
            return None;
        }
        let state = memory.read::<u32>(at + layout::STATE)?;
        // Before 3.14 two bits say whether it is interned, since then sixteen, of which only the lowest are ever set.
        // The width follows, which is never 0.
        let state = if state & 0xfffc == 0 { state >> 16 } else { state >> 2 };
        let (width, compact, ascii) = ((state & 7) as usize, state & 8 != 0, state & 16 != 0);
        let length = memory.read::<usize>(at + layout::LENGTH).filter(|length| *length < LONGEST)?;
        if !compact || !matches!(width, 1 | 2 | 4) {
            return None; // One that a program made by a class of its own: names of code are not.
        }
        let before = if ascii { self.layout.ascii } else { self.layout.compact };
        Some(Text { bytes: memory.bytes(at + before, length * width)?, width })
    }
}
