//! What changes where the scalars of a handle are. Named `hook` in `semantics.toml`; these run for calls that are not
//! recorded, too.

use hetrace_interpose::handles::Handles;

use crate::generated::prelude::P;
use crate::generated::real;

/// Handles whose scalars are known to be in memory of the host. Of others nothing is remembered: what is not there may be
/// anything.
pub static IN_HOST: Handles = Handles::new();

/// `CUSPARSE_POINTER_MODE_HOST`.
const HOST: u32 = 0;

/// A new handle has its scalars in memory of the host.
pub unsafe fn cusparseCreate(_: u64, handle: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    let status = unsafe { real::cusparseCreate(handle) };
    if status == 0 && !handle.is_null() {
        // SAFETY: what a call that succeeded has filled in.
        IN_HOST.insert(unsafe { handle.read_unaligned() } as usize);
    }
    status
}

/// It is forgotten before: from then on its address may be that of another.
pub unsafe fn cusparseDestroy(_: u64, handle: P) -> u32 {
    IN_HOST.remove(handle as usize);
    // SAFETY: the program's own arguments.
    unsafe { real::cusparseDestroy(handle) }
}

/// Nothing is known while the mode changes.
pub unsafe fn cusparseSetPointerMode(_: u64, handle: P, mode: u32) -> u32 {
    IN_HOST.remove(handle as usize);
    // SAFETY: the program's own arguments.
    let status = unsafe { real::cusparseSetPointerMode(handle, mode) };
    if status == 0 && mode == HOST {
        IN_HOST.insert(handle as usize);
    }
    status
}
