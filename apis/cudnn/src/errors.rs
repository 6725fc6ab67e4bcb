//! What cuDNN says of its error codes.

use std::ffi::{CStr, c_char};

use crate::entry::LIBRARY;

/// Codes that there may be: cuDNN 8 numbers them from 1, cuDNN 9 by kinds.
const CODES: [std::ops::Range<u32>; 6] = [1..32, 1001..1016, 2000..2032, 3000..3032, 4000..4016, 5000..5016];
/// None.
const UNKNOWN: u32 = 99_999;

/// Records all texts that cuDNN has. They are the names of codes, so only those are of use that the model does not have.
pub fn report() {
    type Ask = unsafe extern "C" fn(u32) -> *const c_char;
    let Some(ask) = LIBRARY.any_definition(c"cudnnGetErrorString") else { return };
    // SAFETY: the library's function of this name and type.
    let ask = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Ask>(ask) };
    // SAFETY: it takes any code, and returns a constant or NULL.
    let text = |code: u32| unsafe {
        let text = ask(code);
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    let unknown = text(UNKNOWN);
    for code in CODES.into_iter().flatten() {
        if let Some(text) = text(code).filter(|t| Some(*t) != unknown) {
            hetrace_interpose::error_text(code.into(), text);
        }
    }
}
