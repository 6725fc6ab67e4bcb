//! Finding librocprofiler-sdk and loading it.

use std::ffi::{CStr, c_void};

use hetrace_interpose::{each_object, foreign, note};

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
    foreign::open(path, |look_up| (!look_up(MARK).is_null()).then(|| API.load(look_up))).flatten()
}
