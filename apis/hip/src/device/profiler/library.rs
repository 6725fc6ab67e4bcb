//! Finding librocprofiler-sdk and loading it.

use std::ffi::{CStr, c_void};

use hetrace_interpose::dlsym::{Asked, DLSYM};
use hetrace_interpose::{each_object, is_ours, note};

use super::Why;
use super::api::API;

/// The variable that names one.
const VARIABLE: &CStr = c"HETRACE_ROCPROFILER";
/// A function by which it is known.
const MARK: &CStr = c"rocprofiler_force_configure";
/// Where it is looked for: where the loader finds it, and where ROCm is by default.
const NAMES: [&CStr; 4] = [
    c"librocprofiler-sdk.so.1",
    c"librocprofiler-sdk.so.0",
    c"/opt/rocm/lib/librocprofiler-sdk.so.1",
    c"/opt/rocm/lib/librocprofiler-sdk.so.0",
];

/// Fills [`API`]. Returns whether the library has all functions.
pub fn load() -> Result<bool, Why> {
    // SAFETY: NULL, or a text of the environment.
    let named = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if !named.is_null() {
        // SAFETY: `named` is not NULL, so it is a text of the environment.
        if let Some(all) = open(unsafe { CStr::from_ptr(named) }) {
            return Ok(all);
        }
        note(b"the library named by HETRACE_ROCPROFILER is not usable; others are tried");
    }
    // One that the program has is the one that its other tools use.
    let mut present = None;
    each_object(|object| {
        let is_it = !object.contains(load as *const c_void) && object.definition(MARK).is_some();
        present = is_it.then_some(*object);
        !is_it
    });
    if let Some(object) = present {
        object.keep();
        return Ok(API.load(|name| object.definition(name).unwrap_or(std::ptr::null_mut())));
    }
    NAMES.into_iter().find_map(open).ok_or(Why::NotFound)
}

/// Loads a library and takes its functions; `None` if there is none, or it is another.
fn open(path: &CStr) -> Option<bool> {
    // SAFETY: a NUL-terminated path. What the library does when it is loaded is what it would do to any program that is
    // traced by AMD's own tools.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    let look_up = |name: &CStr| {
        let asked = Asked {
            version: std::ptr::null(),
            name: name.as_ptr(),
            handle,
            caller: is_ours as *const c_void,
        };
        // SAFETY: a live handle and a NUL-terminated name. Past our own hook.
        unsafe { DLSYM.ask(&asked) }
    };
    let known = !handle.is_null() && !look_up(MARK).is_null();
    let all = known.then(|| API.load(look_up));
    // SAFETY: no preconditions. It takes back the message of what failed, which is ours.
    unsafe { libc::dlerror() };
    all
}
