//! Where the real functions are.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The address of one real function.
#[derive(Debug)]
pub struct Real(AtomicPtr<c_void>);

impl Real {
    /// Not known yet.
    pub const fn unknown() -> Self {
        Real(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The address, or NULL.
    #[inline(always)]
    pub fn get(&self) -> *mut c_void {
        // Addresses are set before anyone can call the wrapper.
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the address. Answers false if another one is there already.
    pub fn set(&self, address: *mut c_void) -> bool {
        let null = std::ptr::null_mut();
        match self.0.compare_exchange(null, address, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(there) => there == address,
        }
    }
}

/// The next definition of a symbol behind this library, or NULL.
pub fn look_up_next(name: &CStr) -> *mut c_void {
    // SAFETY: a NUL-terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}
