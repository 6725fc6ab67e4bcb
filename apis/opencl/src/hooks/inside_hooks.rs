//! What `--inside` needs besides: twins have what the program gives to their kernels, and end with them; what is ours in a
//! context is not shown.

use crate::generated::prelude::{P, c_void};
use crate::generated::real;
use crate::inside;

const CL_SUCCESS: i32 = 0;
const CL_CONTEXT_REFERENCE_COUNT: u32 = 0x1080;

pub unsafe fn clSetKernelExecInfo(_: u64, kernel: P, name: u32, size: u64, value: *const c_void) -> i32 {
    // SAFETY: the program's own arguments, and then the same with the twin of its kernel.
    unsafe {
        let error = real::clSetKernelExecInfo(kernel, name, size, value);
        if error == CL_SUCCESS {
            inside::configured(kernel, |twin| real::clSetKernelExecInfo(twin, name, size, value));
        }
        error
    }
}

pub unsafe fn clReleaseKernel(_: u64, kernel: P) -> i32 {
    inside::kernel_released(kernel);
    // SAFETY: the program's own argument.
    unsafe { real::clReleaseKernel(kernel) }
}

pub unsafe fn clGetContextInfo(
    _: u64,
    context: P,
    name: u32,
    size: u64,
    value: *mut c_void,
    size_ret: *mut u64,
) -> i32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::clGetContextInfo(context, name, size, value, size_ret) };
    if error == CL_SUCCESS && name == CL_CONTEXT_REFERENCE_COUNT && !value.is_null() && size >= 4 {
        // SAFETY: the program's place for the number, which the call has filled in.
        unsafe { *value.cast::<u32>() = inside::references(context, *value.cast::<u32>()) };
    }
    error
}
