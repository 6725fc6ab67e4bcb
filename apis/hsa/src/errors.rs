//! What HSA says of its error codes.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::entry::LIBRARY;

/// Codes that there may be: HSA's own, of finalizers, of images, of AMD's extensions.
const CODES: [std::ops::Range<u32>; 5] = [1..2, 0x1000..0x1040, 0x2000..0x2010, 0x3000..0x3010, 40..64];

/// Records all texts that HSA has.
pub fn report() {
    type Ask = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
    let Some(ask) = LIBRARY.any_definition(c"hsa_status_string") else { return };
    // SAFETY: the library's function of this name and type.
    let ask = unsafe { std::mem::transmute::<*mut c_void, Ask>(ask) };
    for code in CODES.into_iter().flatten() {
        let mut text = ptr::null();
        // SAFETY: it takes any code, and sets a constant; of a code that is none, it fails.
        let known = unsafe { ask(code, &raw mut text) } == 0 && !text.is_null();
        if known {
            // SAFETY: a constant of the library.
            hetrace_interpose::error_text(code.into(), behind_name(unsafe { CStr::from_ptr(text) }));
        }
    }
}

/// `NAME: what it means` without the name, which reports have from the model.
fn behind_name(text: &CStr) -> &CStr {
    let begin = text.to_bytes().windows(2).position(|two| two == b": ");
    let rest = begin.and_then(|at| text.to_bytes_with_nul().get(at + 2..));
    rest.and_then(|rest| CStr::from_bytes_with_nul(rest).ok()).unwrap_or(text)
}
