//! What the generated files use. Written by hand.

pub use std::ffi::c_void;
pub use std::mem::transmute;
pub use std::ptr::{null, null_mut};

use std::ffi::CStr;

pub use hetrace_interpose::put::{Caps, bytes, list, one, seq, text, texts};
pub use hetrace_interpose::ring::abi::flag::HOOK;
pub use hetrace_interpose::{Real, call, extension, poll, wrapper};

pub use super::real;
use super::tables::NAMES;
pub use crate::device::{NO_GEOMETRY, geometry};

/// A pointer of any kind.
pub type P = *mut c_void;

/// Real functions with one name that are told apart: one per platform.
pub const INSTANCES: usize = 4;
const FUNCTIONS: usize = NAMES.len();

/// The real functions behind the loader.
pub static REAL: [Real; FUNCTIONS] = [const { Real::unknown() }; FUNCTIONS];
/// The real functions that platforms handed out.
pub static EXTENSIONS: [[Real; INSTANCES]; FUNCTIONS] =
    [const { [const { Real::unknown() }; INSTANCES] }; FUNCTIONS];

/// An address in a table.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Address(pub *const c_void);

// SAFETY: the address of a function of this library.
unsafe impl Sync for Address {}

/// Looks a real function up that nobody told us.
#[cold]
#[inline(never)]
pub fn look_up(known: &Real, index: usize) -> Option<P> {
    let name: &CStr = NAMES.get(index)?;
    let address = crate::preload::find(name)?;
    known.set(address);
    Some(address)
}

/// What a function answers that exists nowhere in the process.
pub trait Missing {
    fn answer() -> Self;
}

impl Missing for i32 {
    fn answer() -> i32 {
        -59 // CL_INVALID_OPERATION
    }
}

impl Missing for u64 {
    fn answer() -> u64 {
        0
    }
}

impl Missing for () {
    fn answer() {}
}

impl<T> Missing for *mut T {
    fn answer() -> *mut T {
        null_mut()
    }
}

#[cold]
pub fn missing<R: Missing>() -> R {
    R::answer()
}

/// Where an error code goes: where the program wants it, or to us.
#[inline(always)]
pub fn or_own(wanted: *mut i32, own: *mut i32) -> *mut i32 {
    if wanted.is_null() { own } else { wanted }
}

/// What a pointer to a count points at; no limit if it is NULL.
#[inline(always)]
pub unsafe fn behind<T: Copy + Into<u64>>(at: *const T) -> usize {
    // SAFETY: NULL or an output the real function has filled in.
    if at.is_null() { usize::MAX } else { unsafe { at.read_unaligned() }.into() as usize }
}

/// An element of an array; 0 if there is none.
#[inline(always)]
pub unsafe fn element<T: Copy + Into<u64>>(at: *const T, index: usize) -> usize {
    // SAFETY: NULL or an array as long as the specification says.
    if at.is_null() { 0 } else { unsafe { at.add(index).read_unaligned() }.into() as usize }
}

/// The first handle of an array; NULL if there is none.
#[inline(always)]
pub unsafe fn first(at: *const P) -> P {
    // SAFETY: NULL or at least one handle, as the specification says.
    if at.is_null() { null_mut() } else { unsafe { at.read_unaligned() } }
}

/// The first bytes of a query's answer as one word; never equal if it has more.
#[inline(always)]
pub unsafe fn answer_word(at: P, size: usize) -> u64 {
    match size {
        0 => 0,
        _ if at.is_null() => 0,
        // SAFETY: the program gave room for `size` bytes, now filled in.
        4 => u64::from(unsafe { at.cast::<u32>().read_unaligned() }),
        // SAFETY: as above.
        8 => unsafe { at.cast::<u64>().read_unaligned() },
        _ => hetrace_interpose::ring::clock::ticks(),
    }
}
