//! Functions that hand out other functions, and those that make what commands mention. Named
//! `hook` in `semantics.toml`.

use std::ffi::{CStr, c_char};

use crate::device;
use crate::entry::LIBRARY;
use crate::generated::prelude::P;
use crate::generated::real;

/// The functions in the order of `gizmoTable`, behind its size.
const TABLE: [&CStr; 5] =
    [c"gizmoQueueFinish", c"gizmoRun", c"gizmoWrite", c"gizmoRead", c"cuCtxSynchronize"];

pub unsafe fn gizmoGetTable<T>(_: u64, version: u32, table: *mut T) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::gizmoGetTable(version, table.cast()) };
    if result != 0 {
        return result;
    }
    // SAFETY: a successful call has read and filled a table, which begins with its size in bytes.
    let filled = unsafe { table.cast::<usize>().read() } / size_of::<P>() - 1;
    for (number, name) in TABLE.iter().enumerate().take(filled) {
        // SAFETY: a place of the table that the call has filled in, and a constant name.
        unsafe {
            let place = table.cast::<P>().add(1 + number);
            *place = LIBRARY.handed_out(*place, name.as_ptr());
        }
    }
    result
}

pub unsafe fn gizmoGetFunction(_: u64, name: *const i8) -> P {
    // SAFETY: the program's own argument, NULL or a text, with which the call has just returned.
    unsafe { LIBRARY.handed_out(real::gizmoGetFunction(name), name.cast::<c_char>()) }
}

pub unsafe fn gizmoDeviceOpen(_: u64, ordinal: u32, handle: u64, device: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::gizmoDeviceOpen(ordinal, handle, device) };
    if result == 0 {
        // SAFETY: a successful call has filled it in.
        device::device_opened(unsafe { *device }, ordinal);
    }
    result
}

pub unsafe fn gizmoQueueCreate(_: u64, device: P, handle: u64, queue: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::gizmoQueueCreate(device, handle, queue) };
    if result == 0 {
        // SAFETY: a successful call has filled it in.
        device::queue_made(unsafe { *queue }, device);
    }
    result
}

pub unsafe fn gizmoKernelCreate(_: u64, name: *const i8, handle: u64, kernel: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::gizmoKernelCreate(name, handle, kernel) };
    if result == 0 {
        // SAFETY: a successful call has filled it in, and read the NUL-terminated name.
        unsafe { device::kernel_made(*kernel, CStr::from_ptr(name.cast())) };
    }
    result
}
