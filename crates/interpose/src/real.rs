//! The addresses of real functions, and which addresses are our own.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::elf::Object;

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

    /// Sets the address. Returns false if another one is there already; one of
    /// our own finds its way to the right function by itself.
    pub fn set(&self, address: *mut c_void) -> bool {
        let null = std::ptr::null_mut();
        match self.0.compare_exchange(null, address, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(there) => there == address || is_ours(there),
        }
    }

    /// Sets the address, whatever is there.
    pub fn replace(&self, address: *mut c_void) {
        self.0.store(address, Ordering::Release);
    }
}

/// Makes `answer` what the wrapper of that name leads to, where nothing real stands behind an API. The compiler holds
/// it against the model's prototype, which `known` has.
pub fn lead<F: Copy>(names: &[&CStr], reals: &[Real], name: &str, _known: fn() -> Option<F>, answer: F) {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let number = names.iter().position(|n| n.to_bytes() == name.as_bytes());
    if let Some(real) = number.and_then(|n| reals.get(n)) {
        // SAFETY: the address of a function, as large as any other.
        real.set(unsafe { std::mem::transmute_copy::<F, *mut c_void>(&answer) });
    }
}

/// Leads wrappers to functions of the same names, which an API's folder has: `lead!(NAMES, REAL, known: name …)`.
#[macro_export]
macro_rules! lead {
    ($names:expr, $reals:expr, $known:ident: $($name:ident)*) => {
        $( $crate::lead(&$names, &$reals, stringify!($name), $known::$name, $name); )*
    };
}

/// The next definition of a symbol behind this library, or NULL.
pub fn look_up_next(name: &CStr) -> *mut c_void {
    // SAFETY: a NUL-terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// An address in a table.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Address(pub *const c_void);

// SAFETY: the address of a function of this library.
unsafe impl Sync for Address {}

/// Whether an address lies in this library.
pub fn is_ours(address: *const c_void) -> bool {
    static START: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);
    // The end is set first, so whoever sees the start sees both.
    let mut start = START.load(Ordering::Acquire);
    if start == 0 {
        let Some(own) = Object::holding(is_ours as *const c_void) else { return false };
        END.store(own.end(), Ordering::Relaxed);
        START.store(own.start(), Ordering::Release);
        start = own.start();
    }
    (start..END.load(Ordering::Relaxed)).contains(&(address as usize))
}
