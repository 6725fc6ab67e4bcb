//! Functions that make or end what commands mention. Their arguments are the program's own.

use std::ffi::c_void;

use crate::device::{self, filled, kernels, streams, timing};
use crate::generated::prelude::P;
use crate::generated::real;

#[allow(clippy::too_many_arguments)]
pub unsafe fn __hipRegisterFunction(
    _: u64,
    modules: *mut P,
    host: *const c_void,
    function: *mut i8,
    name: *const i8,
    limit: u32,
    tid: *mut [u8; 12],
    bid: *mut [u8; 12],
    block: *mut [u8; 12],
    grid: *mut [u8; 12],
    size: *mut i32,
) {
    // SAFETY: the program's own arguments; the name is a text, which the call has read.
    unsafe {
        real::__hipRegisterFunction(modules, host, function, name, limit, tid, bid, block, grid, size);
        kernels::made(host, name.cast());
    }
}

pub unsafe fn hipModuleGetFunction(_: u64, function: *mut P, module: P, name: *const i8) -> u32 {
    // SAFETY: the program's own arguments; the name is a text, which the call has read.
    unsafe {
        let error = real::hipModuleGetFunction(function, module, name);
        kernels::made(filled(error, function), name.cast());
        error
    }
}

pub unsafe fn hipGetFuncBySymbol(_: u64, function: *mut P, symbol: *const c_void) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        let error = real::hipGetFuncBySymbol(function, symbol);
        kernels::same(filled(error, function), symbol);
        error
    }
}

/// Functions that make streams.
macro_rules! makes_stream {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => { $(
        pub unsafe fn $name(_: u64, stream: *mut P $(, $arg: $ty)*) -> u32 {
            // SAFETY: the program's own arguments.
            unsafe {
                let error = real::$name(stream $(, $arg)*);
                let made = filled(error, stream);
                if !made.is_null() {
                    device::stream_made(made);
                }
                error
            }
        }
    )* };
}

makes_stream! {
    hipStreamCreate();
    hipStreamCreateWithFlags(flags: u32);
    hipStreamCreateWithPriority(flags: u32, priority: i32);
    hipExtStreamCreateWithCUMask(size: u32, mask: *const u32);
}

pub unsafe fn hipStreamDestroy(_: u64, stream: P) -> u32 {
    if timing() {
        device::synchronized();
        streams::gone(stream);
    }
    // SAFETY: the program's own argument.
    unsafe { real::hipStreamDestroy(stream) }
}

pub unsafe fn hipDeviceReset(_: u64) -> u32 {
    device::resets();
    // SAFETY: no arguments.
    unsafe { real::hipDeviceReset() }
}
