//! What the generated files of every API use; an API's own `prelude.rs` adds
//! what differs.

pub use std::ffi::c_void;
pub use std::mem::transmute;
pub use std::ptr::{null, null_mut};

pub use crate::chain::{Chain, chain};
#[cfg(not(loom))]
pub use crate::library::Handed;
pub use crate::members::*;
pub use crate::put::*;
pub use crate::real::{Address, Real};
pub use crate::ring::abi::flag::HOOK;
pub use crate::sent::hash_sent;
pub use crate::{
    call, changed_wrapper, extension, handing_wrapper, poll, shared_wrapper, value_wrapper, wrapper,
};

/// A pointer of any kind.
pub type P = *mut c_void;

/// Real functions with one name that are distinguished: one per platform.
pub const INSTANCES: usize = 4;

/// What a function returns that exists nowhere in the process.
pub trait Missing {
    /// The API's error, where the return type can express one.
    fn answer(error: i32) -> Self;
}

macro_rules! missing_number {
    ($($ty:ty = |$error:ident| $answer:expr;)*) => { $(
        impl Missing for $ty {
            fn answer($error: i32) -> $ty {
                $answer
            }
        }
    )* };
}

missing_number! {
    i32 = |error| error;
    u32 = |error| error as u32;
    u64 = |_error| 0;
    i64 = |_error| 0;
    i16 = |_error| 0;
    u16 = |_error| 0;
    u8 = |_error| 0;
    i8 = |_error| 0;
    f32 = |_error| 0.0;
    f64 = |_error| 0.0;
    () = |_error| ();
}

impl<T> Missing for *mut T {
    fn answer(_: i32) -> *mut T {
        null_mut()
    }
}

impl<T> Missing for *const T {
    fn answer(_: i32) -> *const T {
        null()
    }
}

impl<T: Copy + Default, const N: usize> Missing for Val<[T; N]> {
    fn answer(_: i32) -> Self {
        Val([T::default(); N])
    }
}

/// Where an error code goes: where the program wants it, or to us.
#[inline(always)]
pub fn or_own(wanted: *mut i32, own: *mut i32) -> *mut i32 {
    if wanted.is_null() { own } else { wanted }
}

/// What a pointer to a count points at; no limit if it is NULL.
///
/// # Safety
/// NULL or an output that the real function has filled in.
#[inline(always)]
pub unsafe fn behind<T: Number>(at: *const T) -> usize {
    // SAFETY: contract: not NULL, so it is an output that was filled in.
    if at.is_null() { usize::MAX } else { unsafe { at.read_unaligned() }.number() }
}

/// An element of an array; 0 if there is none.
///
/// # Safety
/// NULL or an array as long as the specification says.
#[inline(always)]
pub unsafe fn element<T: Number>(at: *const T, index: usize) -> usize {
    // SAFETY: contract: not NULL, so the array has this element.
    if at.is_null() { 0 } else { unsafe { at.add(index).read_unaligned() }.number() }
}

/// The first handle of an array; NULL if there is none.
///
/// # Safety
/// NULL or at least one handle.
#[inline(always)]
pub unsafe fn first(at: *const P) -> P {
    // SAFETY: contract: not NULL, so there is at least one handle.
    if at.is_null() { null_mut() } else { unsafe { at.read_unaligned() } }
}

/// The first bytes of a query's answer as one word; never equal if it has more.
///
/// # Safety
/// NULL or room for `size` bytes, now filled in.
#[inline(always)]
pub unsafe fn answer_word(at: P, size: usize) -> u64 {
    match size {
        0 => 0,
        _ if at.is_null() => 0,
        // SAFETY: contract: not NULL, so `size` bytes are there, which are 4.
        4 => u64::from(unsafe { at.cast::<u32>().read_unaligned() }),
        // SAFETY: contract: not NULL, so `size` bytes are there, which are 8.
        8 => unsafe { at.cast::<u64>().read_unaligned() },
        _ => crate::ring::clock::ticks(),
    }
}
