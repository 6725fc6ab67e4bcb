//! The runtime, as its tool sees it: how it starts one, and what it lets it do.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;

use hetrace_interpose::published::Published;

use crate::generated::prelude::P;

/// `ompt_function_lookup_t`: the runtime's own functions by their names.
pub type Lookup = unsafe extern "C" fn(*const c_char) -> *mut c_void;
/// `ompt_start_tool`.
pub type StartTool = unsafe extern "C" fn(c_uint, *const c_char) -> *mut Started;
type SetCallback = unsafe extern "C" fn(c_uint, *const c_void) -> c_uint;

/// `ompt_start_tool_result_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Started {
    /// Returns 0 if the library does not want to be a tool after all.
    pub initialize: unsafe extern "C" fn(Lookup, c_int, *mut u64) -> c_int,
    pub finalize: unsafe extern "C" fn(*mut u64),
    /// The tool's own.
    pub data: AtomicU64,
}

/// The runtime's `ompt_set_callback`. Of several runtimes in a process the one that began last has it.
static SET_CALLBACK: Published<c_void> = Published::new();
/// Its lookup function.
static LOOKUP: Published<c_void> = Published::new();

/// Keeps the functions that the runtime has given to its tool.
pub fn keep(set_callback: P, lookup: Lookup) {
    SET_CALLBACK.set(set_callback);
    LOOKUP.set(lookup as P);
}

/// Has the runtime call a function at an event, or none if it is NULL. Returns what it says of that, a value of
/// `ompt_set_result_t`.
pub fn set_callback(event: c_uint, callback: *const c_void) -> c_uint {
    let set = SET_CALLBACK.get();
    // SAFETY: NULL, or the runtime's `ompt_set_callback`.
    let Some(set) = (unsafe { transmute::<P, Option<SetCallback>>(set) }) else { return 0 };
    // SAFETY: callbacks have the type that the event's has in the specification.
    unsafe { set(event, callback) }
}

/// Returns a function of the runtime's; NULL if it has none of this name.
pub fn look_up(name: &CStr) -> *mut c_void {
    let lookup = LOOKUP.get();
    // SAFETY: NULL, or the runtime's own function.
    let lookup = unsafe { transmute::<P, Option<Lookup>>(lookup) };
    // SAFETY: a text.
    lookup.map_or(null_mut(), |lookup| unsafe { lookup(name.as_ptr()) })
}
