//! How a runtime starts its tool, and ends it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use hetrace_interpose::{ErrnoGuard, session};

use crate::generated::prelude::P;
use crate::generated::wrappers::ompt_tool_start;
use crate::{events, next};

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

static STARTED: Started = Started { initialize, finalize, data: AtomicU64::new(0) };

/// The runtime's `ompt_set_callback`. Of several runtimes in a process the one that began last has it.
static SET_CALLBACK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Its lookup function.
static LOOKUP: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Called by a runtime that looks for a tool. Without a session the answer is that there is none here, and it goes on looking.
///
/// # Safety
/// `runtime_version` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompt_start_tool(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *mut Started {
    let _errno = ErrnoGuard::new();
    if session().is_none() {
        return null_mut();
    }
    // SAFETY: NULL, or the runtime's own text, which it keeps while it calls this.
    let name = unsafe { next::start(omp_version, runtime_version) };
    let name = name.as_ref().map_or(null(), |name| name.as_ptr());
    // SAFETY: texts, or NULL.
    unsafe { ompt_tool_start::at(omp_version, runtime_version, name) };
    (&raw const STARTED).cast_mut()
}

/// The runtime has chosen us.
unsafe extern "C" fn initialize(lookup: Lookup, initial_device: c_int, _: *mut u64) -> c_int {
    let _errno = ErrnoGuard::new();
    // SAFETY: the runtime's own function.
    let set = unsafe { lookup(c"ompt_set_callback".as_ptr()) };
    if set.is_null() {
        hetrace_interpose::note(
            b"OpenMP: the runtime lets no tool set callbacks, so nothing of it is recorded",
        );
        return 0;
    }
    SET_CALLBACK.store(set, Ordering::Release);
    LOOKUP.store(lookup as P, Ordering::Release);
    events::register();
    // SAFETY: as the runtime calls us.
    unsafe { next::initialize(initial_device) };
    1
}

/// The runtime ends.
unsafe extern "C" fn finalize(_: *mut u64) {
    let _errno = ErrnoGuard::new();
    next::finalize();
}

/// Has the runtime call a function at an event, or none if it is NULL. Returns what it says of that, a value of
/// `ompt_set_result_t`.
pub fn set_callback(event: c_uint, callback: *const c_void) -> c_uint {
    let set = SET_CALLBACK.load(Ordering::Acquire);
    // SAFETY: NULL, or the runtime's `ompt_set_callback`.
    let Some(set) = (unsafe { transmute::<P, Option<SetCallback>>(set) }) else { return 0 };
    // SAFETY: callbacks have the type that the event's has in the specification.
    unsafe { set(event, callback) }
}

/// Returns a function of the runtime's; NULL if it has none of this name.
pub fn look_up(name: &CStr) -> *mut c_void {
    let lookup = LOOKUP.load(Ordering::Acquire);
    // SAFETY: NULL, or the runtime's own function.
    let lookup = unsafe { transmute::<P, Option<Lookup>>(lookup) };
    // SAFETY: a text.
    lookup.map_or(null_mut(), |lookup| unsafe { lookup(name.as_ptr()) })
}
