//! What changes where the scalars of a handle are. Named `hook` in `semantics.toml`; these run for calls that are not
//! recorded, too.

use hetrace_interpose::handles::Handles;

use crate::generated::prelude::P;
use crate::generated::real;

/// Handles whose scalars are known to be in memory of the host. Of others nothing is remembered: what is not there may be
/// anything.
pub static IN_HOST: Handles = Handles::new();

/// `rocblas_pointer_mode_host`.
const HOST: u32 = 0;

/// A new handle has its scalars in memory of the host.
pub unsafe fn rocblas_create_handle(_: u64, handle: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    let status = unsafe { real::rocblas_create_handle(handle) };
    if status == 0 && !handle.is_null() {
        // SAFETY: what a call that succeeded has filled in.
        IN_HOST.insert(unsafe { handle.read_unaligned() } as usize);
    }
    status
}

/// It is forgotten before: from then on its address may be that of another.
pub unsafe fn rocblas_destroy_handle(_: u64, handle: P) -> u32 {
    IN_HOST.remove(handle as usize);
    // SAFETY: the program's own arguments.
    unsafe { real::rocblas_destroy_handle(handle) }
}

/// Nothing is known while the mode changes.
pub unsafe fn rocblas_set_pointer_mode(_: u64, handle: P, mode: u32) -> u32 {
    IN_HOST.remove(handle as usize);
    // SAFETY: the program's own arguments.
    let status = unsafe { real::rocblas_set_pointer_mode(handle, mode) };
    if status == 0 && mode == HOST {
        IN_HOST.insert(handle as usize);
    }
    status
}
