//! `--inside`: code is loaded with twins of its kernels, which record, and launches of chosen kernels are launches of these.
//!
//! ```text
//!  cuModuleLoad… ──► [`image`]: its bytes ──► helper, outside ──► the new image, or the program's own if that fails
//!  cuModuleGetFunction, cuLibraryGetKernel ──► [`twins`]: handle → twin
//!  cuLaunchKernel… ──► the twin, if this launch is chosen; [`pool`]: where its context's twins record
//! ```
//! The program sees its own handles, arguments and errors only.
//!
//! Between threads this file has flags that say something was said, and counts; [`twins`] and [`pool`] say what they hand over.

mod jit;
pub mod link;
mod own;
mod pool;
mod ring;
mod twins;
mod without;

use std::ffi::CStr;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hetrace_interpose::inside::image;
pub use hetrace_interpose::inside::is_on;
use hetrace_interpose::inside::twins::say_late;
use hetrace_interpose::inside::{Replaced, Use, replaced, rings, say_waited};
use hetrace_interpose::{ErrnoGuard, pid};

use crate::device::record::Note;
use crate::device::{driver, streams};
use crate::generated::prelude::{P, c_void};
use crate::generated::real;

pub use jit::Jit;
pub use twins::{
    chosen_of_node, configured, count_without, function_made, function_of_kernel, kernel_made,
    library_module, of_twin, own_function, without_twins,
};

type CUresult = u32;

/// What code is loaded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A module, which belongs to the current context.
    Module,
    /// A library, which belongs to all.
    Library,
}

/// Runs a call that loads code, with an image that has twins if there is one, and else with the program's own. `load` gets
/// the image, and whether it is the program's own.
///
/// # Safety
/// `image` and `made` are what the program passes to that call; `load` passes them on.
pub unsafe fn load(
    image: *const c_void,
    made: *mut P,
    code: Code,
    load: impl Fn(*const c_void, bool) -> CUresult,
) -> CUresult {
    if !is_on() || image.is_null() || made.is_null() {
        return load(image, true);
    }
    // SAFETY: contract: an image that the driver is about to read.
    let found = unsafe { image::bytes(image) };
    // SAFETY: contract: `made` is the call's own place.
    unsafe { load_bytes(found, made, code, |ours| load(ours.unwrap_or(image), ours.is_none())) }
}

/// As [`load`], for code in a file.
///
/// # Safety
/// `name` is NULL or a text, and `made` the place that `load` fills in. `load` gets NULL where the program's own call is to
/// be made.
pub unsafe fn load_file(
    name: *const i8,
    made: *mut P,
    code: Code,
    load: impl Fn(Option<*const c_void>) -> CUresult,
) -> CUresult {
    if !is_on() || name.is_null() || made.is_null() {
        return load(None);
    }
    let _errno = ErrnoGuard::new();
    // SAFETY: not NULL, so the program's own path.
    let path = std::path::Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(
        // SAFETY: not NULL, so the program's own path, which ends with a zero.
        unsafe { CStr::from_ptr(name.cast()) }.to_bytes(),
    ));
    let bytes = fs::metadata(path).ok().filter(|found| found.is_file()).and_then(|_| fs::read(path).ok());
    // SAFETY: contract: `made` is the call's own place.
    unsafe { load_bytes(bytes.as_deref(), made, code, load) }
}

/// # Safety
/// `load` fills `made` in where it returns 0.
unsafe fn load_bytes(
    bytes: Option<&[u8]>,
    made: *mut P,
    code: Code,
    load: impl Fn(Option<*const c_void>) -> CUresult,
) -> CUresult {
    if let Some(twins) = bytes.and_then(link::twins_in) {
        let error = load(None);
        if error == 0 {
            // SAFETY: contract: filled in.
            twins::loaded(unsafe { made.read() }, code, twins);
        }
        return error;
    }
    if bytes.is_some_and(|bytes| !image::may_have_text(bytes)) {
        let error = load(None);
        if error == 0 {
            // SAFETY: contract: filled in.
            without::loaded(unsafe { made.read() });
        }
        return error;
    }
    let Some(ours) = bytes.and_then(with_twins) else { return load(None) };
    let error = load(Some(ours.image().as_ptr().cast()));
    if error == 0 {
        // SAFETY: contract: filled in.
        twins::loaded(unsafe { made.read() }, code, ours.twins);
    } else {
        refused_by_driver(error);
    }
    if error != 0 || code == Code::Module {
        // SAFETY: a module has been made of the image, or nothing. A library may look at it later.
        unsafe { ours.release() };
    }
    if error == 0 { 0 } else { load(None) }
}

fn refused_by_driver(error: CUresult) {
    let note = Note::new().text(b"--inside: the driver refused code with twins with CUDA error ");
    note.number(error.into()).text(b"; its kernels are as they were").leave();
}

/// Returns the image with twins of one that the program loads.
#[cold]
fn with_twins(bytes: &[u8]) -> Option<Replaced> {
    at_end();
    replaced(bytes, capability()?, Use::Loaded)
}

/// Returns the least compute capability of all devices: code may be run on each of them.
fn capability() -> Option<u32> {
    let mut count = 0;
    // SAFETY: room for the answer.
    if unsafe { driver::cuDeviceGetCount(&mut count) } != 0 {
        return None;
    }
    let of = |ordinal: i32| {
        let (mut device, mut major, mut minor) = (0, 0, 0);
        // SAFETY: room for the answers. CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and …_MINOR.
        let error = unsafe {
            driver::cuDeviceGet(&mut device, ordinal)
                | driver::cuDeviceGetAttribute(&mut major, 75, device)
                | driver::cuDeviceGetAttribute(&mut minor, 76, device)
        };
        u32::try_from(major * 10 + minor).ok().filter(|_| error == 0)
    };
    (0..count).filter_map(of).min()
}

/// Launches a kernel, or its twin. A twin that the driver does not want is not tried again. `per_thread`: the default stream is
/// the thread's.
#[inline]
pub fn launch(kernel: P, stream: P, per_thread: bool, launch: impl Fn(P) -> CUresult) -> CUresult {
    let Some(twin) = twins::chosen(kernel, stream) else { return launch(kernel) };
    if rings() {
        return launch_marked(kernel, &twin, streams::meant(stream, per_thread), launch);
    }
    match launch(twin.handle) {
        0 => 0,
        error => twins::refused(kernel, error, launch),
    }
}

/// Launches a twin of which it is to be known when it has ended; or the kernel, where that can't be.
#[cold]
fn launch_marked(kernel: P, twin: &twins::Chosen, stream: P, launch: impl Fn(P) -> CUresult) -> CUresult {
    let Some(begun) = ring::begin(twin.context, twin.count, stream) else {
        twin.is_late();
        return launch(kernel);
    };
    match launch(twin.handle) {
        0 => {
            ring::launched(begun, stream);
            0
        }
        error => {
            drop(begun);
            twins::refused(kernel, error, launch)
        }
    }
}

/// A context is about to end: what its kernels recorded is taken. NULL: one of which nothing is known; what it has is missed
/// at the program's end, and that is said.
pub fn context_ends(context: P) {
    if is_on() {
        if !context.is_null() {
            pool::end(|of| of == context);
        }
        twins::context_ended(context);
    }
}

/// Code is about to be unloaded.
pub fn code_ends(code: P) {
    twins::unloaded(code);
}

/// Sees to it that pools are taken when the program ends.
fn at_end() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    OWNER.store(pid(), Ordering::Relaxed);
    if !ONCE.swap(true, Ordering::Relaxed) {
        // The driver is loaded, so this runs before its end.
        // SAFETY: a function that lives as long as this library.
        unsafe { libc::atexit(ended) };
    }
}

/// The process that loaded code: a forked child has no part in it.
static OWNER: AtomicU32 = AtomicU32::new(0);

extern "C" fn ended() {
    if OWNER.load(Ordering::Relaxed) != pid() {
        return;
    }
    let _errno = ErrnoGuard::new();
    pool::end(|_| true);
    say_waited();
    say_late();
    without::say_images();
}

/// Looks up a kernel in code, past our wrappers.
fn find(owner: P, code: Code, name: &CStr) -> Option<P> {
    let mut found = std::ptr::null_mut();
    // SAFETY: code that is loaded, a text, and room for the answer.
    let error = unsafe {
        match code {
            Code::Module => real::cuModuleGetFunction(&mut found, owner, name.as_ptr().cast()),
            Code::Library => real::cuLibraryGetKernel(&mut found, owner, name.as_ptr().cast()),
        }
    };
    (error == 0 && !found.is_null()).then_some(found)
}
