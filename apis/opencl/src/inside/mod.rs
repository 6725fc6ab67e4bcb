//! `--inside`: launches of chosen kernels are launches of their twins, which record, in a program of our own beside the
//! program's.
//!
//! ```text
//!  clCreateKernel… ──► [`beside`]: its program's binary, if PTX, or source ──► helper, outside ──► a program of ours with twins
//!       └── handle → twin, whose last argument is the buffer ([`pool`]) of its context
//!  clSetKernelArg… ──► the twin's, too            clEnqueueNDRangeKernel ──► the twin, if this launch is chosen
//! ```
//! The program's own objects stay as they are, and so does what it sees of them; only its contexts have references of ours.
//!
//! Handles are paired in [`twins`], pools kept in [`hetrace_interpose::inside::pools`]. Between threads there is nothing else here
//! but a flag that something was said or done.

mod beside;
mod number;
mod own;
mod pool;

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use beside::Beside;
use hetrace_interpose::commands::Note;
pub use hetrace_interpose::inside::is_on;
use hetrace_interpose::inside::twins::{self, Twin, is_any, say_late};
use hetrace_interpose::inside::{pools, say_waited};
use hetrace_interpose::{ErrnoGuard, pid};

use crate::capture::query::{answer, word};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;
use crate::kernels;

const CL_KERNEL_FUNCTION_NAME: u32 = 0x1190;
const CL_KERNEL_NUM_ARGS: u32 = 0x1191;
const CL_KERNEL_REFERENCE_COUNT: u32 = 0x1192;

/// Adds an error of the API to a note.
fn error(note: Note, error: i32) -> Note {
    let sign: &[u8] = if error < 0 { b"-" } else { b"" };
    note.text(b" (OpenCL error ").text(sign).number(error.unsigned_abs().into()).text(b")")
}

/// The program was given a kernel of one of its programs.
#[inline]
pub fn kernel_made(program: P, kernel: P) {
    if is_on() && !kernel.is_null() {
        paired(program, kernel);
    }
}

#[cold]
fn paired(program: P, kernel: P) {
    let _errno = ErrnoGuard::new();
    ended(kernel);
    let name = answer(|size, at, ret| {
        // SAFETY: room as said; the kernel was just made.
        unsafe { real::clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, at, ret) }
    });
    let Some(name) = name.as_ref().and_then(|name| CStr::from_bytes_until_nul(name.bytes()).ok()) else {
        return;
    };
    let Some(count) = twins::count(name.to_bytes()) else { return };
    at_end();
    let Some(beside) = beside::of(program) else { return };
    let twin = twins::twin_name(name.to_bytes(), |name| beside.kernel(name));
    // One without a twin is named by who made the others, but for those that nobody saw in a source.
    let Some(twin) = twin else {
        if beside.is_numbered() {
            unseen(name.to_bytes(), count);
        }
        return;
    };
    let arguments = word::<u32>(|size, at| {
        // SAFETY: room as said; the kernel was just made.
        unsafe { real::clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, size, at, null_mut()) }
    });
    let buffer = beside.buffer();
    let set = arguments.map_or(-1, |last| {
        // SAFETY: our own kernel, and a handle of a buffer that is read now.
        unsafe { real::clSetKernelArg(twin, last, size_of::<P>() as u64, (&raw const buffer).cast()) }
    });
    if set != 0 || !twins::pair(kernel, twin, beside.key(), beside.context(), count) {
        if set != 0 {
            as_it_was(name.to_bytes(), b"its twin does not take its buffer", set);
        }
        // SAFETY: our own kernel, of which nobody knows.
        unsafe { real::clReleaseKernel(twin) };
        return;
    }
    kernels::forget(twin);
}

/// Says once of a kernel that its program of ours has no twin of it.
fn unseen(name: &[u8], count: u32) {
    static SAID: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
    let (place, bit) = (count as usize / 64 % 64, 1u64 << (count % 64));
    if SAID.get(place).is_none_or(|said| said.fetch_or(bit, Ordering::Relaxed) & bit != 0) {
        return;
    }
    let note = Note::new().text(b"--inside: ").text(name.get(..80).unwrap_or(name));
    note.text(b" is as it was: its program's source has no twin of it; if no reason is given elsewhere, a macro or an included file makes it")
        .leave();
}

fn as_it_was(name: &[u8], why: &[u8], code: i32) {
    let note = Note::new().text(b"--inside: ").text(name.get(..80).unwrap_or(name));
    error(note.text(b" is as it was from here on: ").text(why), code).leave();
}

/// The program has cloned a kernel: its twin is cloned, with its arguments.
pub fn cloned(source: P, kernel: P) {
    if !is_any() || kernel.is_null() {
        return;
    }
    let _errno = ErrnoGuard::new();
    ended(kernel);
    let Some(of) = twins::of(source) else { return };
    let mut code = 0;
    // SAFETY: a kernel of ours that lives as the program's does, and room for the answer.
    let twin = unsafe { real::clCloneKernel(of.handle(), &mut code) };
    if !twin.is_null() {
        kernels::forget(twin);
        if !twins::pair(kernel, twin, of.owner(), of.context(), of.count()) {
            // SAFETY: our own kernel, of which nobody knows.
            unsafe { real::clReleaseKernel(twin) };
        }
    }
}

/// The program has set something of a kernel: its twin gets it, too. One that can't have it is not launched.
#[inline]
pub fn configured(kernel: P, set: impl FnOnce(P) -> i32) {
    if is_any()
        && let Some(twin) = twins::of(kernel)
    {
        let code = set(twin.handle());
        if code != 0 {
            give_up(kernel, code);
        }
    }
}

/// Launches a kernel, or its twin if this launch is chosen. A twin that the driver does not want is not tried again.
#[inline]
pub fn launch(queue: P, kernel: P, launch: impl Fn(P) -> i32) -> i32 {
    let Some(twin) = chosen(queue, kernel) else { return launch(kernel) };
    let numbered = Beside::of_key(twin.owner()).is_some_and(Beside::is_numbered);
    let code =
        if numbered { number::launch(kernel, twin.handle(), &launch) } else { Some(launch(twin.handle())) };
    let Some(code) = code else { return launch(kernel) };
    if code == 0 {
        return code;
    }
    let own = launch(kernel);
    if own == 0 {
        give_up(kernel, code);
    }
    own
}

fn chosen(queue: P, kernel: P) -> Option<&'static Twin> {
    if !is_any() {
        return None;
    }
    let twin = twins::of(kernel).filter(|twin| twin.records())?;
    // A buffer has room on each device of its context, but is on one at a time.
    let runs = pool::is_of(twin.context(), queue);
    if !runs {
        static SAID: AtomicBool = AtomicBool::new(false);
        twins::once(
            &SAID,
            b"of the devices of an OpenCL context one records; on others kernels are as they were",
        );
    }
    runs.then_some(twin)
}

#[cold]
fn give_up(kernel: P, code: i32) {
    let _errno = ErrnoGuard::new();
    twins::part(kernel);
    // SAFETY: NULL, or the name of a kernel, which stays.
    let name = unsafe { hetrace_interpose::commands::text(kernels::name(kernel)) };
    as_it_was(name.to_bytes(), b"its twin can't be launched or configured as it is", code);
}

/// The program gives a reference of a kernel back: with the last one its twin ends.
pub fn kernel_released(kernel: P) {
    if !is_any() || twins::of(kernel).is_none() {
        return;
    }
    let count = word::<u32>(|size, at| {
        // SAFETY: room as said; the handle has a twin, so it is of a kernel that lives.
        unsafe { real::clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, size, at, null_mut()) }
    });
    if count == Some(1) {
        ended(kernel);
    }
}

/// A handle is of no kernel any more, or of another one.
fn ended(kernel: P) {
    // SAFETY: the twin's only reference is ours, and the pair has just ended.
    twins::forget_one(kernel, |twin| _ = unsafe { real::clReleaseKernel(twin.handle()) });
}

/// The program gives a reference of a context back. With its last one what kernels have recorded there is taken.
pub fn context_released(context: P) {
    // There may be a pool though no twin came of it.
    if is_on() && pool::is_last(context) {
        let _errno = ErrnoGuard::new();
        pools::end(|of| of == context, take);
    }
}

/// Takes what the kernels of a context have recorded, and gives back what is ours in it.
fn take(context: P, address: u64, bytes: u64) {
    pool::save(context, address, bytes);
    twins::forget(
        |twin| twin.context() == context,
        // SAFETY: the twin's only reference is ours, and the pair has just ended.
        |twin| _ = unsafe { real::clReleaseKernel(twin.handle()) },
    );
    beside::end(context);
    pool::release(address);
}

/// Takes our references off the count of a context's.
pub fn references(context: P, count: u32) -> u32 {
    if is_on() { count.saturating_sub(pool::references(context)) } else { count }
}

/// The process that has twins: a forked child has no part in them.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Sees to it that pools are taken when the program ends.
fn at_end() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    OWNER.store(pid(), Ordering::Relaxed);
    if !ONCE.swap(true, Ordering::Relaxed) {
        // The driver is loaded, so this runs before its end.
        // SAFETY: a function that lives as long as this library.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    if OWNER.load(Ordering::Relaxed) == pid() {
        let _errno = ErrnoGuard::new();
        pools::end(|_| true, take);
        say_waited();
        say_late();
    }
}
