//! Programs of ours beside those of the traced program, with twins of their kernels: made of their binaries on devices where these
//! are PTX, elsewhere of their sources.
//!
//! One is known by its context, its device and its content, so that a program that is built again, or made anew of the same
//! source, has the right one. Which of two threads that make one at once has made it, a [`Table`] decides; the other one's
//! is released. A program is complete before it is in the table, and stays where it is.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use hetrace_interpose::commands::Note;
use hetrace_interpose::hash;
use hetrace_interpose::inside::twins::{expect, once};
use hetrace_interpose::inside::{Use, replaced};
use hetrace_interpose::table::Table;

use super::error;
use super::pool::{self, Pool};
use crate::capture::query::{Memory, answer, handles, text, word};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

const CL_PROGRAM_CONTEXT: u32 = 0x1161;
const CL_PROGRAM_DEVICES: u32 = 0x1163;
const CL_PROGRAM_BINARY_SIZES: u32 = 0x1165;
const CL_PROGRAM_BINARIES: u32 = 0x1166;
const CL_PROGRAM_SOURCE: u32 = 0x1164;
const CL_PROGRAM_BUILD_OPTIONS: u32 = 0x1182;
const CL_PROGRAM_BUILD_LOG: u32 = 0x1183;
/// Of `cl_nv_device_attribute_query`.
const CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV: u32 = 0x4000;
const CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV: u32 = 0x4001;
/// No binary is larger; one that says so is left alone.
const LARGEST: u64 = 1 << 30;

/// A program of ours.
#[derive(Debug)]
pub struct Beside {
    program: AtomicPtr<libc::c_void>,
    context: P,
    buffer: P,
    /// Twins get the number of each launch, as they can't ask for it.
    numbered: bool,
    next: *const Beside,
}

// SAFETY: handles, which any thread may use, and a pointer to one that stays.
unsafe impl Sync for Beside {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Beside {}

/// Context, device and content, mixed → the program, or `NONE`.
static KNOWN: Table<4096> = Table::new();
/// There is none.
const NONE: u64 = 1;
/// Contexts that have ended: another one may have the handle of one of them.
static ENDED: AtomicU64 = AtomicU64::new(0);
/// All of them, the last first.
static ALL: AtomicPtr<Beside> = AtomicPtr::new(null_mut());

impl Beside {
    /// Makes a kernel; none if there is none of this name.
    pub fn kernel(&self, name: &CStr) -> Option<P> {
        let program = self.program.load(Ordering::Acquire);
        let mut code = 0;
        // SAFETY: our own program, a text, and room for the answer.
        let made = |program| unsafe { real::clCreateKernel(program, name.as_ptr().cast(), &mut code) };
        Some(program).filter(|program| !program.is_null()).map(made).filter(|kernel| !kernel.is_null())
    }

    /// It makes no kernel any more.
    fn release(&self) {
        let program = self.program.swap(null_mut(), Ordering::AcqRel);
        if !program.is_null() {
            // SAFETY: our own reference, which nobody else has any more.
            unsafe { real::clReleaseProgram(program) };
        }
    }

    /// Returns the buffer in which its kernels record.
    pub fn buffer(&self) -> P {
        self.buffer
    }

    /// Returns whether its twins get the number of each launch.
    pub fn is_numbered(&self) -> bool {
        self.numbered
    }

    /// Returns what has this key; none for none.
    pub fn of_key(key: P) -> Option<&'static Beside> {
        // SAFETY: NULL, or what `key` has returned, which `keep` has leaked.
        unsafe { key.cast::<Beside>().as_ref() }
    }

    /// Returns its context.
    pub fn context(&self) -> P {
        self.context
    }

    /// Returns by what its kernels are known to be its own.
    pub fn key(&self) -> P {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

/// What the program's program is.
struct Asked {
    context: P,
    device: P,
    text: Text,
    options: Memory,
}

/// What it is made of.
enum Text {
    /// PTX, for this compute capability.
    Binary(Memory, u32),
    /// OpenCL C.
    Source(Memory),
}

impl Text {
    fn bytes(&self) -> &[u8] {
        match self {
            Text::Binary(memory, _) | Text::Source(memory) => memory.bytes(),
        }
    }
}

/// Returns the program beside one of the program's that is built; none if there is none.
pub fn of(program: P) -> Option<&'static Beside> {
    let asked = ask(program)?;
    let key = asked.key(ENDED.load(Ordering::Acquire));
    let known = KNOWN.get(key).filter(|known| *known > 0);
    let first = known.or_else(|| {
        let made = make(&asked).map_or(NONE, |made| std::ptr::from_ref(made) as u64);
        let first = KNOWN.first(key, made);
        if first != Some(made)
            && let Some(made) = at(made)
        {
            made.release();
        }
        first
    });
    first.and_then(at)
}

/// What [`KNOWN`] has leads to.
fn at(known: u64) -> Option<&'static Beside> {
    // SAFETY: an address that is not `NONE` is of one that `keep` has leaked.
    (known != NONE).then(|| unsafe { &*(known as *const Beside) })
}

impl Asked {
    /// Returns by what it is known, after so many contexts have ended.
    fn key(&self, ended: u64) -> u64 {
        let place = (self.context as u64).rotate_left(17) ^ self.device as u64 ^ ended << 48;
        hash::add(
            hash::add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.options.bytes()),
            self.text.bytes(),
        )
        .max(1)
    }
}

/// Asks for what it takes to make another program like this one. None, and a note why, if that can't be known.
fn ask(program: P) -> Option<Asked> {
    let context = handles(&about(program, CL_PROGRAM_CONTEXT)?).next()?;
    let device = handles(&about(program, CL_PROGRAM_DEVICES)?).next()?;
    // Before the binary: other drivers compile all kernels to give one.
    let text = match capability(device) {
        Some(capability) => Text::Binary(binary(program)?, capability),
        None => Text::Source(source(program)?),
    };
    let options = answer(|size, at, ret| {
        // SAFETY: room as said; the program lives, and is of this device.
        unsafe { real::clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, size, at, ret) }
    });
    Some(Asked { context, device, text, options: options.or_else(|| Memory::new(1))? })
}

fn about(program: P, name: u32) -> Option<Memory> {
    answer(|size, at, ret| {
        // SAFETY: room as said; the program lives.
        unsafe { real::clGetProgramInfo(program, name, size, at, ret) }
    })
}

/// Returns the source of a program; none if it has none, as it came as a binary, or was linked.
fn source(program: P) -> Option<Memory> {
    let source =
        about(program, CL_PROGRAM_SOURCE).filter(|source| source.bytes().iter().any(|byte| *byte != 0));
    if source.is_none() {
        static SAID: AtomicBool = AtomicBool::new(false);
        once(
            &SAID,
            b"an OpenCL program has no source, as it is linked or came as a binary; its kernels are as they were",
        );
    }
    source
}

/// Returns the binary of a program for its first device, if that is PTX.
fn binary(program: P) -> Option<Memory> {
    let sizes = about(program, CL_PROGRAM_BINARY_SIZES)?;
    let size = handles(&sizes).next()? as u64;
    let count = sizes.bytes().len() / 8;
    let text = Memory::new(Some(size).filter(|size| *size <= LARGEST)? as usize)?;
    // Those of other devices are not asked for.
    let mut places: Vec<P> = Vec::new();
    places.try_reserve_exact(count).ok()?;
    places.resize(count, null_mut());
    *places.first_mut()? = text.at().cast();
    // SAFETY: a place for each device, of which the first has room for its binary.
    let code = unsafe {
        let (bytes, at) = (size_of_val(&*places) as u64, places.as_mut_ptr().cast());
        real::clGetProgramInfo(program, CL_PROGRAM_BINARIES, bytes, at, null_mut())
    };
    if code != 0 || !is_text(text.bytes()) {
        static SAID: AtomicBool = AtomicBool::new(false);
        once(&SAID, b"an OpenCL program's binary is not PTX; its kernels are as they were");
        return None;
    }
    Some(text)
}

/// Returns whether a binary is PTX: a text that says its version.
fn is_text(binary: &[u8]) -> bool {
    let end = binary.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = binary.get(..end).unwrap_or_default();
    !text.contains(&0) && text.windows(8).any(|word| word == b".version")
}

/// Returns the compute capability of a device; none if it is of another kind.
fn capability(device: P) -> Option<u32> {
    let of = |name| {
        word::<u32>(|size, at| {
            // SAFETY: room as said; a device of the program's.
            unsafe { real::clGetDeviceInfo(device, name, size, at, null_mut()) }
        })
    };
    Some(of(CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV)? * 10 + of(CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV)?)
}

/// Makes a program with twins.
#[cold]
fn make(asked: &Asked) -> Option<&'static Beside> {
    let (device, use_) = match asked.text {
        Text::Binary(_, capability) => (capability, Use::Beside),
        Text::Source(_) => (0, Use::Source),
    };
    let ours = replaced(asked.text.bytes(), device, use_)?;
    let made = pool::of(asked.context, asked.device).and_then(|pool| {
        let program = pool.making(asked.context, || built(asked, ours.image()))?;
        Some(keep(asked.context, pool, program, use_ == Use::Source))
    });
    // SAFETY: a program was made of a copy of the image, or none.
    unsafe { ours.release() };
    made
}

/// Makes a program of a text, and builds it with the options of the program's own, or without any if the driver does not
/// want these for a binary.
fn built(asked: &Asked, text: &CStr) -> Option<P> {
    let own = CStr::from_bytes_until_nul(asked.options.bytes()).unwrap_or_default();
    let mut why = Refused::default();
    for options in [own, c""] {
        match build(asked, text, options) {
            Ok(program) => return Some(program),
            Err(refused) => why = refused,
        }
        if own.is_empty() || matches!(asked.text, Text::Source(_)) {
            break;
        }
    }
    let note = Note::new().text(b"--inside: the driver refused a program with twins");
    let note = error(note, why.code).text(b"; its kernels are as they were");
    match why.log.as_ref().map(|log| first_error(log.bytes())) {
        Some(line) if !line.is_empty() => note.text(b": ").text(line).leave(),
        _ => note.leave(),
    }
    None
}

/// Why a program was not built.
#[derive(Debug, Default)]
struct Refused {
    code: i32,
    log: Option<Memory>,
}

/// Returns what a build's log says first: a line with an error, if there is one.
fn first_error(log: &[u8]) -> &[u8] {
    let mut lines = text(log).split(|byte| *byte == b'\n');
    let first = lines.clone().find(|line| !line.is_empty());
    let line = lines.find(|line| line.windows(6).any(|word| word == b"error:")).or(first).unwrap_or_default();
    line.get(..160).unwrap_or(line)
}

fn build(asked: &Asked, text: &CStr, options: &CStr) -> Result<P, Refused> {
    let (device, bytes, at) =
        (asked.device, text.count_bytes() as u64, text.as_ptr().cast_mut().cast::<libc::c_void>());
    let (mut status, mut code) = (0, 0);
    // SAFETY: one device of the program's context, a text of so many bytes that the call copies, and room for the answers.
    let program = unsafe {
        let (devices, lengths, texts) = (&raw const device, &raw const bytes, &raw const at);
        match asked.text {
            Text::Binary(..) => real::clCreateProgramWithBinary(
                asked.context,
                1,
                devices,
                lengths,
                texts.cast(),
                &mut status,
                &mut code,
            ),
            Text::Source(_) => {
                real::clCreateProgramWithSource(asked.context, 1, texts.cast_mut().cast(), lengths, &mut code)
            }
        }
    };
    if program.is_null() {
        return Err(Refused { code, log: None });
    }
    // SAFETY: our own program, one device of it, a text, and no callback: it is built when this returns.
    let code = unsafe {
        real::clBuildProgram(program, 1, &raw const device, options.as_ptr().cast(), null_mut(), null_mut())
    };
    if code == 0 {
        return Ok(program);
    }
    let log = answer(|size, at, ret| {
        // SAFETY: room as said; our own program, of this device.
        unsafe { real::clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, at, ret) }
    });
    // SAFETY: made above, and nobody else knows it.
    unsafe { real::clReleaseProgram(program) };
    Err(Refused { code, log })
}

/// Keeps a program until its context ends.
fn keep(context: P, pool: &Pool, program: P, numbered: bool) -> &'static Beside {
    let (buffer, next, program) = (pool.buffer, null_mut(), AtomicPtr::new(program));
    let kept = Box::leak(Box::new(Beside { program, context, buffer, numbered, next }));
    let mut next = ALL.load(Ordering::Acquire);
    loop {
        kept.next = next;
        // Pairs with the Acquire loads: who finds it finds what is behind it.
        match ALL.compare_exchange(next, kept, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => break,
            Err(other) => next = other,
        }
    }
    expect();
    kept
}

/// A context ends, or does not record any more: its programs of ours do.
pub fn end(context: P) {
    ENDED.fetch_add(1, Ordering::AcqRel);
    let mut at = ALL.load(Ordering::Acquire).cast_const();
    // SAFETY: NULL, or one that `keep` has leaked.
    while let Some(beside) = unsafe { at.as_ref() } {
        if beside.context == context {
            beside.release();
        }
        at = beside.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_a_log_is_shown() {
        assert_eq!(first_error(b"\nwarning: a\nx:3:1: error: b\nerror: c\0"), b"x:3:1: error: b");
        assert_eq!((first_error(b"\nfailed\n\0"), first_error(b"")), (&b"failed"[..], &b""[..]));
    }

    #[test]
    fn binaries_that_are_texts_are_known() {
        assert!(is_text(b"//\n// Generated\n.version 8.4\n.target sm_90, texmode_independent\n\0\0"));
        assert!(is_text(b".version 7.0"));
        assert!(!is_text(b"\x7fELF\x02\x01\0\0.version 8.0"));
        assert!(!is_text(b"BC\xc0\xde") && !is_text(b"") && !is_text(b"\0\0"));
    }
}
