//! Functions that hand out other functions, and, in [`device`], those that make what commands mention. Named `hook` in
//! `semantics.toml`.
//!
//! Whatever HIP hands out lies in its own library: the address identifies the function, and so the wrapper that stands
//! for it. The name that the program gave does not: it comes without the suffix of the per-thread default stream.

mod device;

pub use device::*;

use crate::entry::LIBRARY;
use crate::generated::prelude::P;
use crate::generated::real;

pub unsafe fn hipGetProcAddress(
    _: u64,
    symbol: *const i8,
    pfn: *mut P,
    version: i32,
    flags: u64,
    status: *mut u32,
) -> u32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::hipGetProcAddress(symbol, pfn, version, flags, status) };
    // SAFETY: the program's own name and place, after the call whose `error` this is.
    unsafe { LIBRARY.hand_out_at(error, symbol, pfn) };
    error
}

/// One and the same for both default streams.
macro_rules! entry_points {
    ($($name:ident)*) => { $(
        pub unsafe fn $name(_: u64, symbol: *const i8, place: *mut P, flags: u64, status: *mut u32) -> u32 {
            // SAFETY: the program's own arguments.
            let error = unsafe { real::$name(symbol, place, flags, status) };
            // SAFETY: the program's own name and place, after the call whose `error` this is.
            unsafe { LIBRARY.hand_out_at(error, symbol, place) };
            error
        }
    )* };
}

entry_points! { hipGetDriverEntryPoint hipGetDriverEntryPoint_spt }
