//! Kernels by handle. Those of one name are one function, which has its name and how often it is launched.

use hetrace_interpose::commands::named::{self, Function};
use hetrace_interpose::table::Table;

use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Longest name kept, without its NUL.
pub const NAME: usize = 247;
const CL_KERNEL_FUNCTION_NAME: u32 = 0x1190;

/// Handle → the function of its name.
static KERNELS: Table<16384> = Table::new();

/// The name of a kernel with its NUL; NULL if it has none.
#[inline]
pub fn name(kernel: P) -> *const u8 {
    get(kernel).map_or(std::ptr::null(), Function::name)
}

/// The function of a kernel's handle; none if it is NULL or has no name.
#[inline]
pub fn get(kernel: P) -> Option<&'static Function> {
    if kernel.is_null() {
        return None;
    }
    match KERNELS.get(kernel as u64) {
        // SAFETY: `ask` put the address of a function there, and none is ever freed.
        Some(known) => unsafe { (known as *const Function).as_ref() },
        None => ask(kernel),
    }
}

/// A kernel was created: its handle may have belonged to another before.
pub fn forget(kernel: P) {
    KERNELS.remove(kernel as u64);
}

#[cold]
fn ask(kernel: P) -> Option<&'static Function> {
    let mut buffer = [0u8; NAME + 1];
    // SAFETY: room for as many bytes as we say; the kernel is the program's.
    let error = unsafe {
        real::clGetKernelInfo(
            kernel,
            CL_KERNEL_FUNCTION_NAME,
            NAME as u64,
            buffer.as_mut_ptr().cast(),
            null_mut(),
        )
    };
    if error != 0 {
        return None;
    }
    let length = buffer.iter().position(|b| *b == 0).unwrap_or(NAME);
    let known = named::intern_any(buffer.get(..length).unwrap_or_default())?;
    KERNELS.set(kernel as u64, std::ptr::from_ref(known) as u64);
    Some(known)
}
