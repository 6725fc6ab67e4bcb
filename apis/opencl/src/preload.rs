//! The way in for loaders without layers: this library is preloaded, and its
//! symbols stand before the loader's.

use std::ffi::{CStr, c_void};

use hetrace_interpose::look_up_next;

/// The real function behind a preloaded symbol.
pub fn find(name: &CStr) -> Option<*mut c_void> {
    let address = look_up_next(name);
    if !address.is_null() && !is_ours(address) {
        return Some(address);
    }
    // A loader that was opened where we can't look (RTLD_LOCAL).
    // SAFETY: asks only for libraries that are loaded already.
    let handle = unsafe { libc::dlopen(c"libOpenCL.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: an open handle and a NUL-terminated name. The handle is kept: the
    // address must stay valid.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!address.is_null() && !is_ours(address)).then_some(address)
}

/// Whether an address lies in this library.
pub fn is_ours(address: *const c_void) -> bool {
    let base = |address: *const c_void| {
        // SAFETY: all bit patterns of the struct are valid.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address may be asked for.
        let found = unsafe { libc::dladdr(address, &mut info) };
        if found == 0 { std::ptr::null_mut() } else { info.dli_fbase }
    };
    let theirs = base(address);
    !theirs.is_null() && theirs == base(is_ours as *const c_void)
}
