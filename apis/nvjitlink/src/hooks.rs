//! `--inside`: machine code that nvJitLink links is known with its text, of which kernels that record are made where the code is
//! loaded. The program's options and inputs stay as they are.
//!
//! Each function is there once for each version of the header, and once by its plain name; what is asked of a link for us is
//! asked by functions of the version that its program uses.

use std::ffi::{CStr, c_void};

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::inside::{image, is_on};

use crate::functions::Functions;
use crate::generated::prelude::P;
use crate::generated::real;
use crate::link;

/// # Safety
/// What nvJitLink returned, and the arguments of that call.
unsafe fn created(error: u32, handle: *mut P, count: u32, options: *const P) -> u32 {
    if error == 0 && is_on() {
        let _errno = ErrnoGuard::new();
        // SAFETY: it succeeded, so the handle is there, and the options are as many as it says.
        unsafe { link::begin(*handle, count, options) };
    }
    error
}

/// # Safety
/// The argument of a call that ends a link.
unsafe fn ends(handle: *mut P) {
    if is_on() && !handle.is_null() {
        let _errno = ErrnoGuard::new();
        // SAFETY: contract: nvJitLink reads it, too.
        link::end(unsafe { *handle });
    }
}

/// # Safety
/// What nvJitLink returned, and the arguments of that call.
unsafe fn added(error: u32, handle: P, kind: u32, data: *const c_void, size: u64, name: *const i8) -> u32 {
    if error == 0 && is_on() && !data.is_null() {
        let _errno = ErrnoGuard::new();
        // SAFETY: it succeeded, so as many bytes are there; the name is NULL or a text.
        unsafe {
            let name = if name.is_null() { c"" } else { CStr::from_ptr(name) };
            link::add(handle, kind, std::slice::from_raw_parts(data.cast(), size as usize), name.to_bytes());
        }
    }
    error
}

/// # Safety
/// What nvJitLink returned, and the arguments of that call.
unsafe fn added_file(error: u32, handle: P, kind: u32, path: *const i8) -> u32 {
    if error == 0 && is_on() && !path.is_null() {
        let _errno = ErrnoGuard::new();
        // SAFETY: it succeeded, so the path is a text.
        link::add_file(handle, kind, unsafe { CStr::from_ptr(path) });
    }
    error
}

/// # Safety
/// What nvJitLink returned, the arguments of that call, and functions of the same version.
unsafe fn given(error: u32, handle: P, cubin: *const c_void, functions: &Functions) -> u32 {
    if error == 0 && is_on() && !cubin.is_null() {
        let _errno = ErrnoGuard::new();
        // SAFETY: it succeeded, so an ELF file is there, which nvJitLink has just written.
        if let Some(code) = unsafe { image::bytes(cubin) } {
            // SAFETY: the link that the code is of is complete.
            unsafe { link::linked(handle, code, functions) };
        }
    }
    error
}

macro_rules! hooks {
    ($($create:ident $destroy:ident $add:ident $add_file:ident $complete:ident $cubin:ident $ptx_size:ident $ptx:ident $log_size:ident $log:ident;)*) => {
        $(
            pub unsafe fn $create(_: u64, handle: *mut P, count: u32, options: *const P) -> u32 {
                // SAFETY: the program's own arguments.
                unsafe { created(real::$create(handle, count, options), handle, count, options) }
            }

            pub unsafe fn $destroy(_: u64, handle: *mut P) -> u32 {
                // SAFETY: the program's own argument; before the call, as the address may be given out again behind it.
                unsafe {
                    ends(handle);
                    real::$destroy(handle)
                }
            }

            pub unsafe fn $add(_: u64, handle: P, kind: u32, data: *const c_void, size: u64, name: *const i8) -> u32 {
                // SAFETY: the program's own arguments.
                unsafe { added(real::$add(handle, kind, data, size, name), handle, kind, data, size, name) }
            }

            pub unsafe fn $add_file(_: u64, handle: P, kind: u32, path: *const i8) -> u32 {
                // SAFETY: the program's own arguments.
                unsafe { added_file(real::$add_file(handle, kind, path), handle, kind, path) }
            }

            pub unsafe fn $cubin(_: u64, handle: P, cubin: *mut c_void) -> u32 {
                let functions = Functions {
                    create: real::$create,
                    destroy: real::$destroy,
                    add: real::$add,
                    complete: real::$complete,
                    ptx_size: real::$ptx_size,
                    ptx: real::$ptx,
                    log_size: real::$log_size,
                    log: real::$log,
                };
                // SAFETY: the program's own arguments, and functions of the same version.
                unsafe { given(real::$cubin(handle, cubin), handle, cubin, &functions) }
            }
        )*
    };
}

hooks! {
    nvJitLinkCreate nvJitLinkDestroy nvJitLinkAddData nvJitLinkAddFile nvJitLinkComplete nvJitLinkGetLinkedCubin nvJitLinkGetLinkedPtxSize nvJitLinkGetLinkedPtx nvJitLinkGetErrorLogSize nvJitLinkGetErrorLog;
    __nvJitLinkCreate_12_0 __nvJitLinkDestroy_12_0 __nvJitLinkAddData_12_0 __nvJitLinkAddFile_12_0 __nvJitLinkComplete_12_0 __nvJitLinkGetLinkedCubin_12_0 __nvJitLinkGetLinkedPtxSize_12_0 __nvJitLinkGetLinkedPtx_12_0 __nvJitLinkGetErrorLogSize_12_0 __nvJitLinkGetErrorLog_12_0;
    __nvJitLinkCreate_12_1 __nvJitLinkDestroy_12_1 __nvJitLinkAddData_12_1 __nvJitLinkAddFile_12_1 __nvJitLinkComplete_12_1 __nvJitLinkGetLinkedCubin_12_1 __nvJitLinkGetLinkedPtxSize_12_1 __nvJitLinkGetLinkedPtx_12_1 __nvJitLinkGetErrorLogSize_12_1 __nvJitLinkGetErrorLog_12_1;
    __nvJitLinkCreate_12_2 __nvJitLinkDestroy_12_2 __nvJitLinkAddData_12_2 __nvJitLinkAddFile_12_2 __nvJitLinkComplete_12_2 __nvJitLinkGetLinkedCubin_12_2 __nvJitLinkGetLinkedPtxSize_12_2 __nvJitLinkGetLinkedPtx_12_2 __nvJitLinkGetErrorLogSize_12_2 __nvJitLinkGetErrorLog_12_2;
    __nvJitLinkCreate_12_3 __nvJitLinkDestroy_12_3 __nvJitLinkAddData_12_3 __nvJitLinkAddFile_12_3 __nvJitLinkComplete_12_3 __nvJitLinkGetLinkedCubin_12_3 __nvJitLinkGetLinkedPtxSize_12_3 __nvJitLinkGetLinkedPtx_12_3 __nvJitLinkGetErrorLogSize_12_3 __nvJitLinkGetErrorLog_12_3;
    __nvJitLinkCreate_12_4 __nvJitLinkDestroy_12_4 __nvJitLinkAddData_12_4 __nvJitLinkAddFile_12_4 __nvJitLinkComplete_12_4 __nvJitLinkGetLinkedCubin_12_4 __nvJitLinkGetLinkedPtxSize_12_4 __nvJitLinkGetLinkedPtx_12_4 __nvJitLinkGetErrorLogSize_12_4 __nvJitLinkGetErrorLog_12_4;
    __nvJitLinkCreate_12_5 __nvJitLinkDestroy_12_5 __nvJitLinkAddData_12_5 __nvJitLinkAddFile_12_5 __nvJitLinkComplete_12_5 __nvJitLinkGetLinkedCubin_12_5 __nvJitLinkGetLinkedPtxSize_12_5 __nvJitLinkGetLinkedPtx_12_5 __nvJitLinkGetErrorLogSize_12_5 __nvJitLinkGetErrorLog_12_5;
    __nvJitLinkCreate_12_6 __nvJitLinkDestroy_12_6 __nvJitLinkAddData_12_6 __nvJitLinkAddFile_12_6 __nvJitLinkComplete_12_6 __nvJitLinkGetLinkedCubin_12_6 __nvJitLinkGetLinkedPtxSize_12_6 __nvJitLinkGetLinkedPtx_12_6 __nvJitLinkGetErrorLogSize_12_6 __nvJitLinkGetErrorLog_12_6;
    __nvJitLinkCreate_12_8 __nvJitLinkDestroy_12_8 __nvJitLinkAddData_12_8 __nvJitLinkAddFile_12_8 __nvJitLinkComplete_12_8 __nvJitLinkGetLinkedCubin_12_8 __nvJitLinkGetLinkedPtxSize_12_8 __nvJitLinkGetLinkedPtx_12_8 __nvJitLinkGetErrorLogSize_12_8 __nvJitLinkGetErrorLog_12_8;
    __nvJitLinkCreate_12_9 __nvJitLinkDestroy_12_9 __nvJitLinkAddData_12_9 __nvJitLinkAddFile_12_9 __nvJitLinkComplete_12_9 __nvJitLinkGetLinkedCubin_12_9 __nvJitLinkGetLinkedPtxSize_12_9 __nvJitLinkGetLinkedPtx_12_9 __nvJitLinkGetErrorLogSize_12_9 __nvJitLinkGetErrorLog_12_9;
    __nvJitLinkCreate_13_0 __nvJitLinkDestroy_13_0 __nvJitLinkAddData_13_0 __nvJitLinkAddFile_13_0 __nvJitLinkComplete_13_0 __nvJitLinkGetLinkedCubin_13_0 __nvJitLinkGetLinkedPtxSize_13_0 __nvJitLinkGetLinkedPtx_13_0 __nvJitLinkGetErrorLogSize_13_0 __nvJitLinkGetErrorLog_13_0;
    __nvJitLinkCreate_13_1 __nvJitLinkDestroy_13_1 __nvJitLinkAddData_13_1 __nvJitLinkAddFile_13_1 __nvJitLinkComplete_13_1 __nvJitLinkGetLinkedCubin_13_1 __nvJitLinkGetLinkedPtxSize_13_1 __nvJitLinkGetLinkedPtx_13_1 __nvJitLinkGetErrorLogSize_13_1 __nvJitLinkGetErrorLog_13_1;
    __nvJitLinkCreate_13_2 __nvJitLinkDestroy_13_2 __nvJitLinkAddData_13_2 __nvJitLinkAddFile_13_2 __nvJitLinkComplete_13_2 __nvJitLinkGetLinkedCubin_13_2 __nvJitLinkGetLinkedPtxSize_13_2 __nvJitLinkGetLinkedPtx_13_2 __nvJitLinkGetErrorLogSize_13_2 __nvJitLinkGetErrorLog_13_2;
    __nvJitLinkCreate_13_3 __nvJitLinkDestroy_13_3 __nvJitLinkAddData_13_3 __nvJitLinkAddFile_13_3 __nvJitLinkComplete_13_3 __nvJitLinkGetLinkedCubin_13_3 __nvJitLinkGetLinkedPtxSize_13_3 __nvJitLinkGetLinkedPtx_13_3 __nvJitLinkGetErrorLogSize_13_3 __nvJitLinkGetErrorLog_13_3;
    __nvJitLinkCreate_13_4 __nvJitLinkDestroy_13_4 __nvJitLinkAddData_13_4 __nvJitLinkAddFile_13_4 __nvJitLinkComplete_13_4 __nvJitLinkGetLinkedCubin_13_4 __nvJitLinkGetLinkedPtxSize_13_4 __nvJitLinkGetLinkedPtx_13_4 __nvJitLinkGetErrorLogSize_13_4 __nvJitLinkGetErrorLog_13_4;
    __nvJitLinkCreate_13_5 __nvJitLinkDestroy_13_5 __nvJitLinkAddData_13_5 __nvJitLinkAddFile_13_5 __nvJitLinkComplete_13_5 __nvJitLinkGetLinkedCubin_13_5 __nvJitLinkGetLinkedPtxSize_13_5 __nvJitLinkGetLinkedPtx_13_5 __nvJitLinkGetErrorLogSize_13_5 __nvJitLinkGetErrorLog_13_5;
}
