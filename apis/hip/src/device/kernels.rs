//! Kernels: by the address of the function that stands for one on the host, or by the handle that a module gave.

use std::ffi::{CStr, c_char, c_void};

use hetrace_interpose::commands::named::{self, Function};
use hetrace_interpose::table::Table;

/// Address or handle → the function.
static NAMES: Table<65536> = Table::new();

/// Code was registered, or a module has given a handle.
///
/// # Safety
/// `name` is NULL or a text.
pub unsafe fn made(kernel: *const c_void, name: *const c_char) {
    if kernel.is_null() || name.is_null() {
        return;
    }
    // SAFETY: a text, by the contract.
    if let Some(function) = named::intern(unsafe { CStr::from_ptr(name) }.to_bytes()) {
        NAMES.set(kernel as u64, std::ptr::from_ref(function) as u64);
    }
}

/// The program was given a handle of what an address stands for.
pub fn same(handle: *const c_void, address: *const c_void) {
    if let Some(function) = NAMES.get(address as u64) {
        NAMES.set(handle as u64, function);
    }
}

/// What a launch runs; none if it is not known.
#[inline]
pub fn of(kernel: *const c_void) -> Option<&'static Function> {
    let known = if kernel.is_null() { None } else { NAMES.get(kernel as u64) };
    // SAFETY: an address that was put there, of what is never freed.
    known.and_then(|at| unsafe { (at as *const Function).as_ref() })
}
