//! What the driver says of its error codes.

use std::ffi::{CStr, c_char};

use crate::entry::LIBRARY;
use crate::generated::prelude::P;

/// Codes are below this.
const MOST: u32 = 1000;

type GetErrorString = unsafe extern "C" fn(code: u32, text: *mut *const c_char) -> u32;

/// Records all texts that the driver has; the others have no text.
pub fn report() {
    let Some(ask) = LIBRARY.any_definition(c"cuGetErrorString") else { return };
    // SAFETY: the driver's function of this name, which has this prototype.
    let ask = unsafe { std::mem::transmute::<P, GetErrorString>(ask) };
    for code in 1..MOST {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: room for the answer, a constant of the driver's.
        unsafe {
            if ask(code, &raw mut text) == 0 && !text.is_null() {
                hetrace_interpose::error_text(code.into(), CStr::from_ptr(text));
            }
        }
    }
}
