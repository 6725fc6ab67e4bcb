//! How a runtime starts its tool, and ends it.

use std::ffi::{c_char, c_int, c_uint};
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU64;

use hetrace_interpose::{ErrnoGuard, session};

use crate::generated::wrappers::ompt_tool_start;
use crate::runtime::{self, Lookup, Started};
use crate::{events, next, target};

static STARTED: Started = Started { initialize, finalize, data: AtomicU64::new(0) };

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
    runtime::keep(set, lookup);
    events::register();
    // SAFETY: as the runtime calls us.
    unsafe { next::initialize(initial_device) };
    1
}

/// The runtime ends.
unsafe extern "C" fn finalize(_: *mut u64) {
    let _errno = ErrnoGuard::new();
    target::missed();
    next::finalize();
}
