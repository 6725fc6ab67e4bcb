//! A tool that the user has named behind us. A runtime has one tool, so we do for the next one what the runtime does
//! for us: we start it, and pass on every event that it wants, with the same arguments. The words that a runtime keeps
//! for its tool (`ompt_data_t`) are all the next one's; we use none of them.
//!
//! What the thread of the runtime that starts or ends the tool leaves for those that report events are [`Published`]
//! pointers; one runtime at a time starts it ([`Claim`]). Loom explores the interleavings of both. A tool that ends while
//! another thread is in a callback of it finds that as it would without us: runtimes do not wait for these either.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use hetrace_interpose::commands::Claim;
use hetrace_interpose::published::Published;

use crate::generated::prelude::P;
use crate::passed::CALLBACKS;
use crate::runtime::{Lookup, StartTool, Started};
use crate::{events, runtime};

/// By this our library is known, whatever its path: one that a launcher around this one has named, too.
#[unsafe(no_mangle)]
static hetrace_is_tool: u8 = 1;

/// What the next tool has returned to us as we did to the runtime; NULL if there is none.
static NEXT: Published<Started> = Published::new();
/// A runtime is starting it.
static STARTS: Claim = Claim::new();

/// Starts the next tool, as the runtime would if we were not there: the first library of the list behind ours that
/// wants to be one. Returns its path.
///
/// # Safety
/// `runtime_version` is NULL or a text.
pub unsafe fn start(omp_version: c_uint, runtime_version: *const c_char) -> Option<CString> {
    // SAFETY: `runtime_version` is NULL or a text, as this function's caller got it from the runtime.
    STARTS.holding(|| unsafe { start_alone(omp_version, runtime_version) }).flatten()
}

/// # Safety
/// As [`start`].
unsafe fn start_alone(omp_version: c_uint, runtime_version: *const c_char) -> Option<CString> {
    if !NEXT.get().is_null() {
        return None; // A second runtime of the process: it has been started.
    }
    // SAFETY: a text; runtimes read their variables the same way at this time.
    let list = unsafe { libc::getenv(c"OMP_TOOL_LIBRARIES".as_ptr()) };
    if !list.is_null() {
        // SAFETY: not NULL, so a text.
        for path in unsafe { CStr::from_ptr(list) }.to_bytes().split(|b| *b == b':') {
            let Some(path) = CString::new(path).ok().filter(|path| !path.is_empty()) else { continue };
            // SAFETY: NULL, or the runtime's own text, which it keeps while it starts us.
            if unsafe { take(&path, omp_version, runtime_version) } {
                return Some(path);
            }
        }
    }
    // What LLVM's runtime starts where nobody else is a tool: without it ThreadSanitizer sees races in OpenMP.
    let archer = archer(runtime_version)?;
    // SAFETY: not NULL, as `archer` has found, so the runtime's own text, which it keeps while it starts us.
    unsafe { take(&archer, omp_version, runtime_version) }.then_some(archer)
}

/// Starts a library as the next tool. Returns whether it is one.
///
/// # Safety
/// As [`start`].
unsafe fn take(path: &CStr, omp_version: c_uint, runtime_version: *const c_char) -> bool {
    // SAFETY: a text. What a library does when it is opened is what it would do for the runtime.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return false;
    }
    // SAFETY: an open library and a text.
    let start = unsafe { libc::dlsym(library, c"ompt_start_tool".as_ptr()) };
    // Not by the address of our function: the name is bound to whichever library of the process has it first.
    // SAFETY: the same open library, and a text.
    let is_ours = !unsafe { libc::dlsym(library, c"hetrace_is_tool".as_ptr()) }.is_null();
    // SAFETY: NULL, or a function that has this type by the specification.
    let start = unsafe { transmute::<P, Option<StartTool>>(start) }.filter(|_| !is_ours);
    // SAFETY: the tool's own function of this type, called as the runtime would, with its own text.
    let started = start.map_or(null_mut(), |start| unsafe { start(omp_version, runtime_version) });
    if started.is_null() {
        // SAFETY: opened above.
        unsafe { libc::dlclose(library) };
        return false;
    }
    NEXT.set(started);
    true
}

/// Returns where Archer is, in a process with ThreadSanitizer: in the runtime's own folder.
fn archer(runtime_version: *const c_char) -> Option<CString> {
    // SAFETY: a text.
    let sanitizer = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_func_entry".as_ptr()) };
    if sanitizer.is_null() || runtime_version.is_null() {
        return None;
    }
    // SAFETY: plain data.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the text lies in the runtime's own file; room for what is returned.
    if unsafe { libc::dladdr(runtime_version.cast(), &raw mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: not NULL, so a text.
    let runtime = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    let folder = runtime.iter().rposition(|b| *b == b'/').and_then(|slash| runtime.get(..=slash))?;
    CString::new([folder, b"libarcher.so"].concat()).ok()
}

/// The runtime initializes its tool, and so do we the next one.
///
/// # Safety
/// The runtime is just initializing us.
pub unsafe fn initialize(initial_device: c_int) {
    // SAFETY: NULL, or what the tool has returned, which lives as long as it is one.
    let Some(next) = (unsafe { NEXT.get().as_ref() }) else { return };
    // SAFETY: its own function and its own word.
    if unsafe { (next.initialize)(look_up, initial_device, next.data.as_ptr()) } == 0 {
        leave();
    }
}

/// The next tool's work ends.
pub fn finalize() {
    let next = NEXT.take();
    // SAFETY: NULL, or what the tool has returned, which lives as long as it is one: `finalize` takes it once.
    if let Some(next) = unsafe { next.as_ref() } {
        // SAFETY: its own function and its own word.
        unsafe { (next.finalize)(next.data.as_ptr()) };
    }
}

/// The next tool is none any more.
fn leave() {
    for (event, callback) in CALLBACKS.iter().enumerate() {
        if !callback.take().is_null() {
            events::wanted(event as c_uint);
        }
    }
    NEXT.set(null_mut());
}

/// The runtime's functions, as the next tool finds them. Those that are about the tool itself are ours.
unsafe extern "C" fn look_up(name: *const c_char) -> *mut c_void {
    if name.is_null() {
        return null_mut();
    }
    // SAFETY: not NULL, so a text.
    let name = unsafe { CStr::from_ptr(name) };
    match name.to_bytes() {
        b"ompt_set_callback" => set_callback as *mut c_void,
        b"ompt_get_callback" => get_callback as *mut c_void,
        b"ompt_finalize_tool" => finalize_tool as *mut c_void,
        _ => runtime::look_up(name),
    }
}
const _: Lookup = look_up;

unsafe extern "C" fn set_callback(event: c_uint, callback: *mut c_void) -> c_uint {
    let Some(place) = CALLBACKS.get(event as usize) else { return 0 };
    place.set(callback);
    events::wanted(event)
}

unsafe extern "C" fn get_callback(event: c_uint, callback: *mut *mut c_void) -> c_int {
    let there = CALLBACKS.get(event as usize).map_or(null_mut(), Published::get);
    if there.is_null() || callback.is_null() {
        return 0;
    }
    // SAFETY: the tool's own place for it.
    unsafe { callback.write(there) };
    1
}

/// The next tool has seen enough; we have not.
unsafe extern "C" fn finalize_tool() {
    finalize();
    leave();
}
