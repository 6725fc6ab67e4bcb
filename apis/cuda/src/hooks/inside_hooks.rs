//! What `--inside` needs besides: twins have what the program gives to their kernels, and are not shown to it.

use crate::generated::prelude::{P, c_void};
use crate::generated::real;
use crate::inside::{self, link};

type CUresult = u32;

pub unsafe fn cuLibraryGetModule(_: u64, module: *mut P, library: P) -> CUresult {
    // SAFETY: the program's own arguments; the real function has filled the place in if it returns 0.
    unsafe {
        let error = real::cuLibraryGetModule(module, library);
        if error == 0 && !module.is_null() {
            inside::library_module(module.read(), library);
        }
        error
    }
}

pub unsafe fn cuModuleGetFunctionCount(_: u64, count: *mut u32, module: P) -> CUresult {
    // SAFETY: the program's own arguments.
    unsafe {
        let error = real::cuModuleGetFunctionCount(count, module);
        if error == 0 {
            inside::count_without(count, module);
        }
        error
    }
}

pub unsafe fn cuLibraryGetKernelCount(_: u64, count: *mut u32, library: P) -> CUresult {
    // SAFETY: the program's own arguments.
    unsafe {
        let error = real::cuLibraryGetKernelCount(count, library);
        if error == 0 {
            inside::count_without(count, library);
        }
        error
    }
}

/// Functions that set something of a kernel.
macro_rules! sets {
    ($($name:ident($($before:ident: $is:ty,)* | $handle:ident | $(, $after:ident: $ty:ty)*);)*) => { $(
        pub unsafe fn $name(_: u64, $($before: $is,)* $handle: P $(, $after: $ty)*) -> CUresult {
            // SAFETY: the program's own arguments, and then the same with the twin of its kernel.
            inside::configured($handle, |handle| unsafe { real::$name($($before,)* handle $(, $after)*) })
        }
    )* };
}

sets! {
    cuFuncSetAttribute(|function|, attribute: u32, value: i32);
    cuFuncSetCacheConfig(|function|, config: u32);
    cuFuncSetSharedMemConfig(|function|, config: u32);
    cuKernelSetAttribute(attribute: u32, value: i32, |kernel|, device: i32);
    cuKernelSetCacheConfig(|kernel|, config: u32, device: i32);
}

pub unsafe fn cuLinkCreate(_: u64, n: u32, options: *mut u32, values: *mut P, state: *mut P) -> CUresult {
    // SAFETY: the program's own arguments; the place is filled in where 0 is returned.
    unsafe { link::begun(n, options, values, state, real::cuLinkCreate(n, options, values, state)) }
}

pub unsafe fn cuLinkCreate_v2(_: u64, n: u32, options: *mut u32, values: *mut P, state: *mut P) -> CUresult {
    // SAFETY: the program's own arguments; the place is filled in where 0 is returned.
    unsafe { link::begun(n, options, values, state, real::cuLinkCreate_v2(n, options, values, state)) }
}

/// Functions that add what is linked.
macro_rules! adds {
    ($($name:ident $file:ident;)*) => { $(
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            _: u64, state: P, kind: u32, data: *mut c_void, size: u64, name: *const i8, n: u32, options: *mut u32,
            values: *mut P,
        ) -> CUresult {
            // SAFETY: the program's own arguments, which are kept where 0 is returned.
            unsafe {
                let error = real::$name(state, kind, data, size, name, n, options, values);
                if error == 0 {
                    link::added(state, kind, data, size, name, (n, options, values));
                }
                error
            }
        }

        pub unsafe fn $file(
            _: u64, state: P, kind: u32, path: *const i8, n: u32, options: *mut u32, values: *mut P,
        ) -> CUresult {
            // SAFETY: the program's own arguments, which are kept where 0 is returned.
            unsafe {
                let error = real::$file(state, kind, path, n, options, values);
                if error == 0 {
                    link::added_file(state, kind, path, (n, options, values));
                }
                error
            }
        }
    )* };
}

adds! {
    cuLinkAddData cuLinkAddFile;
    cuLinkAddData_v2 cuLinkAddFile_v2;
}

pub unsafe fn cuLinkComplete(_: u64, state: P, cubin: *mut P, size: *mut u64) -> CUresult {
    // SAFETY: the program's own arguments; the places are filled in where 0 is returned.
    unsafe {
        let error = real::cuLinkComplete(state, cubin, size);
        if error == 0 {
            link::completed(state, cubin, size);
        }
        error
    }
}

pub unsafe fn cuLinkDestroy(_: u64, state: P) -> CUresult {
    link::ends(state);
    // SAFETY: the program's own argument.
    unsafe { real::cuLinkDestroy(state) }
}
