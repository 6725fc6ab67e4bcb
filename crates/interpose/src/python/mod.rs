//! The Python stack of each recorded call (`--py-stacks`), read from the interpreter's own frames.
//!
//! No Python code is run, no lock is taken, and nothing is asked of the interpreter but which state this thread has. A
//! thread that makes a call can't run Python code meanwhile, so its frames stand still while they are read here.
//!
//! ```text
//!  call ─► budget: cold ─► note ─► find: the interpreter, once ─► layout: where its members are
//!                           ├─► frames: the stack, the outermost first ─► hash: its id
//!                           ├─► known: not yet in the trace? ─► PY_FRAME records: file, function, line
//!                           └─► PY_STACK record, right before the entry of the call
//! ```
//!
//! A stack has an id: a hash of the stack around, and of the contents of the innermost code object and the place in it
//! (never of addresses, which are used again). What is not as expected makes the stack unknown, and nothing else.

mod find;
mod frames;

mod layout;
mod lines;
mod memory;
mod text;

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use hetrace_ring::abi::{PyFrameRecord, PyStackRecord, option, py_stack, special};
use hetrace_ring::clock;
use hetrace_ring::writer::Writer;

use crate::errno::ErrnoGuard;
use crate::hash;
use crate::known::{Added, Known};
use crate::own;
use crate::process::{note as leave, note_once, session};
use crate::put::{Plain, Raw};
use crate::text::Text as Line;
use crate::write::write_at;
use find::Found;
use frames::{Code, Interpreter, Unknown};
use layout::Refused;
use memory::Memory;
use text::Utf8;

/// The stacks that were described.
static KNOWN: Known = Known::new();
/// What is known of the process's interpreter.
static STATE: AtomicU8 = AtomicU8::new(state::UNKNOWN);
/// Counter value before which nobody looks for one again.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);
/// Stacks that were read with care, and were as expected.
static PROVED: AtomicU32 = AtomicU32::new(0);
/// So many stacks of a process are read with care.
const PROOF: u32 = 8;
/// Ticks, less than half a millisecond, in which no interpreter is loaded and initialized.
const PAUSE: u64 = 1 << 20;

/// Values of [`STATE`].
mod state {
    /// There was none when it was looked for last.
    pub const UNKNOWN: u8 = 0;
    /// A thread is looking.
    pub const LOOKING: u8 = 1;
    /// It is in [`super::PLACE`].
    pub const FOUND: u8 = 2;
    /// It is one that is not read.
    pub const REFUSED: u8 = 3;
}

struct Place(UnsafeCell<MaybeUninit<Found>>);

// SAFETY: written by the one thread that made `STATE` LOOKING, before it makes it FOUND; read only after that.
unsafe impl Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));

/// Whether Python stacks are wanted.
#[inline]
pub(crate) fn is_on() -> bool {
    session().is_some_and(|session| session.option(option::PY_STACKS))
}

/// Records the Python stack of a call that is about to be recorded by this thread, whose entry has number `entry`, at
/// the time of that. Returns whether it worked: else the call must not be recorded, lest it get another's stack.
#[cold]
#[inline(never)]
pub(crate) fn note(writer: &Writer, entry: u16, time: u64) -> bool {
    let _errno = ErrnoGuard::new();
    let stack = match stack(writer, time) {
        Ok(stack) => stack,
        Err(unknown) => {
            explain(unknown);
            py_stack::UNKNOWN
        }
    };
    put(writer, entry, time, stack)
}

/// As [`note`], of a call of which the stack is not looked for.
pub(crate) fn note_none(writer: &Writer, entry: u16, time: u64) -> bool {
    put(writer, entry, time, py_stack::UNKNOWN)
}

fn put(writer: &Writer, entry: u16, time: u64, stack: u64) -> bool {
    let record = PyStackRecord { stack, entry: entry.into() };
    // SAFETY: plain data without gaps.
    unsafe { write_at(writer, special::PY_STACK, Plain(&record), time) }
}

/// Returns the id of this thread's stack, which the trace has then.
fn stack(writer: &Writer, time: u64) -> Result<u64, Unknown> {
    let own;
    let found = match interpreter() {
        Ok(found) => found,
        Err(state::UNKNOWN) => return Ok(py_stack::NONE),
        // Another thread has not found it yet, and nobody waits for it.
        Err(state::LOOKING) => match find::find() {
            Some(Ok(found)) => {
                own = found;
                &own
            }
            Some(Err(_)) => return Ok(py_stack::UNKNOWN),
            None => return Ok(py_stack::NONE),
        },
        Err(_) => return Ok(py_stack::UNKNOWN),
    };
    if PROVED.load(Ordering::Relaxed) >= PROOF {
        return read(writer, time, found, Memory::<false>);
    }
    let read = read(writer, time, found, Memory::<true>);
    match read {
        Ok(stack) if stack != py_stack::NONE => _ = PROVED.fetch_add(1, Ordering::Relaxed),
        // Nothing shows that it is as expected at all.
        Err(Unknown::Odd) => STATE.store(state::REFUSED, Ordering::Relaxed),
        _ => {}
    }
    read
}

fn read<const C: bool>(writer: &Writer, time: u64, found: &Found, memory: Memory<C>) -> Result<u64, Unknown> {
    let Found { interpreter, state } = found;
    // SAFETY: may be called by any thread at any time: it returns NULL before the interpreter is initialized, after it
    // was finalized, and in threads that it does not know.
    let state = unsafe { state() } as usize;
    if state == 0 {
        return Ok(py_stack::NONE);
    }
    let innermost = interpreter.innermost(memory, state, own::this_thread())?;
    let mut stack = py_stack::NONE;
    interpreter.each(memory, innermost, |frame| {
        let code = interpreter.describe(memory, frame.code)?;
        stack = within(stack, &code, frame.offset);
        Some(())
    })?;
    if stack == py_stack::NONE || KNOWN.has(stack) {
        return Ok(stack);
    }
    describe_all(writer, time, interpreter, memory, innermost)?;
    Ok(stack)
}

/// Describes all stacks that are around the innermost frame and not known yet, and that one.
#[cold]
#[inline(never)]
fn describe_all<const C: bool>(
    writer: &Writer,
    time: u64,
    interpreter: &Interpreter,
    memory: Memory<C>,
    innermost: usize,
) -> Result<(), Unknown> {
    let mut around = py_stack::NONE;
    let (mut full, mut room) = (false, true);
    interpreter.each(memory, innermost, |frame| {
        let code = interpreter.describe(memory, frame.code)?;
        let inner = within(around, &code, frame.offset);
        if room && !KNOWN.has(inner) {
            let line = code.line(interpreter, frame.offset);
            // One that finds no room in the ring is described the next time, and so is what is inside of it: of a stack
            // that is known, all is.
            room = describe(writer, time, [inner, around], &code, line);
            full |= room && KNOWN.add(inner) == Added::Full;
        }
        around = inner;
        Some(())
    })?;
    if full {
        note_once(
            &FULL,
            b"Python stacks: there are more different ones than a process remembers; some are described repeatedly",
        );
    }
    Ok(())
}

/// The id of a stack: that of the one around it, with a frame inside.
#[inline(always)]
fn within(around: u64, code: &Code<'_>, offset: i32) -> u64 {
    let place = hash::mix(code.hash(), u64::from(offset.cast_unsigned()));
    hash::mix(around, place).max(py_stack::FIRST)
}

/// Records what the innermost frame of a stack is. Returns whether there was room.
#[inline(never)]
fn describe(writer: &Writer, time: u64, [stack, around]: [u64; 2], code: &Code<'_>, line: i32) -> bool {
    let (file, function) = (
        Utf8::<{ py_stack::LONGEST_FILE }>::of(code.file),
        Utf8::<{ py_stack::LONGEST_NAME }>::of(code.name),
    );
    let record = PyFrameRecord {
        stack,
        around,
        line: line.cast_unsigned(),
        first_line: code.first_line.max(0).cast_unsigned(),
        file: file.bytes().len() as u32,
        function: function.bytes().len() as u32,
    };
    let fields = (Plain(&record), Raw(file.bytes()), Raw(function.bytes()));
    // SAFETY: plain data without gaps, and texts.
    unsafe { write_at(writer, special::PY_FRAME, fields, time) }
}

/// The interpreter, if it is known by now; else what is known of it.
fn interpreter() -> Result<&'static Found, u8> {
    if STATE.load(Ordering::Acquire) == state::UNKNOWN {
        look();
    }
    // Pairs with the Release store in `look`.
    match STATE.load(Ordering::Acquire) {
        // SAFETY: written before `STATE` became FOUND, and never again.
        state::FOUND => Ok(unsafe { (*PLACE.0.get()).assume_init_ref() }),
        other => Err(other),
    }
}

/// Looks for the interpreter.
#[cold]
#[inline(never)]
fn look() {
    let now = clock::ticks();
    if now < NOT_BEFORE.load(Ordering::Relaxed) {
        return;
    }
    let looking =
        STATE.compare_exchange(state::UNKNOWN, state::LOOKING, Ordering::Relaxed, Ordering::Relaxed);
    if looking.is_err() {
        return;
    }
    let state = match find::find() {
        None => {
            NOT_BEFORE.store(clock::ticks().wrapping_add(PAUSE), Ordering::Relaxed);
            state::UNKNOWN
        }
        Some(Ok(found)) => {
            // SAFETY: only the thread that made `STATE` LOOKING comes here, and nobody reads before it is FOUND.
            unsafe { (*PLACE.0.get()).write(found) };
            state::FOUND
        }
        Some(Err((version, refused))) => {
            refuse(version, refused);
            state::REFUSED
        }
    };
    // Pairs with the Acquire loads in `interpreter`.
    STATE.store(state, Ordering::Release);
}

/// Says why an interpreter is not read.
fn refuse(version: Option<find::Version>, refused: Refused) {
    let mut line = Line::<200>::new();
    line.push(b"Python stacks are not known: ");
    let Some(version) = version else {
        line.push(b"the interpreter is no release of CPython 3.9 to 3.14");
        return leave(line.bytes());
    };
    line.push(b"CPython 3.");
    line.number(version.minor.into());
    line.push(match refused {
        Refused::Version => b" is not one of 3.9 to 3.14".as_slice(),
        Refused::FreeThreaded => b" is a free-threaded build",
        Refused::Offsets => b" does not have the table of offsets that its version has",
    });
    leave(line.bytes());
}

static ODD: AtomicBool = AtomicBool::new(false);
static DEEP: AtomicBool = AtomicBool::new(false);
static SEVERAL: AtomicBool = AtomicBool::new(false);
static FULL: AtomicBool = AtomicBool::new(false);

/// Says once why a stack is not known.
fn explain(unknown: Unknown) {
    match unknown {
        Unknown::Odd if STATE.load(Ordering::Relaxed) == state::REFUSED => note_once(
            &ODD,
            b"Python stacks are not known: the interpreter's frames are not as this version of CPython has them",
        ),
        Unknown::Odd => {
            note_once(&ODD, b"Python stacks of some calls are not known: frames were not as expected, as in a signal handler");
        }
        Unknown::Deep => note_once(&DEEP, b"Python stacks of more than 16384 frames are not known"),
        Unknown::Several => note_once(
            &SEVERAL,
            b"Python stacks are not known while there are sub-interpreters: CPython before 3.12 does not say which one a thread runs",
        ),
        // Threads that go on while the interpreter ends have no Python code that could go on.
        Unknown::Ending => {}
    }
}

#[cfg(test)]
mod tests;
