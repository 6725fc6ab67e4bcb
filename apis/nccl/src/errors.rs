//! What NCCL says of its error codes.

use std::ffi::{CStr, c_char};

use crate::entry::LIBRARY;
use crate::generated::prelude::P;

/// Codes are below this.
const MOST: u32 = 32;

type GetErrorString = unsafe extern "C" fn(code: u32) -> *const c_char;

/// Tells all that NCCL knows; for others it has one text.
pub fn tell() {
    let Some(ask) = LIBRARY.any_definition(c"ncclGetErrorString") else { return };
    // SAFETY: the library's function of this name, which has this prototype.
    let ask = unsafe { std::mem::transmute::<P, GetErrorString>(ask) };
    // SAFETY: answers a constant, or NULL.
    let text = |code: u32| unsafe {
        let text = ask(code);
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    let unknown = text(MOST * 99);
    for code in 1..MOST {
        if let Some(text) = text(code).filter(|t| Some(*t) != unknown) {
            hetrace_interpose::error_text(code.into(), text);
        }
    }
}
