//! The texts of an API's error codes.

use std::ffi::{CStr, c_char, c_void};

use hetrace_ring::abi::{ErrorTextRecord, special};

use crate::record::record_with_text;

/// Records the text of an error code.
pub fn error_text(code: i64, text: &CStr) {
    record_with_text(special::ERROR_TEXT, &ErrorTextRecord { code }, text);
}

/// Records the texts of all codes below `most`, of an API whose function returns
/// a text for each code, and one and the same for those that are none.
///
/// # Safety
/// `ask` takes a code, and returns a constant or NULL.
pub unsafe fn error_texts(ask: *mut c_void, most: u32) {
    type Ask = unsafe extern "C" fn(code: u32) -> *const c_char;
    // SAFETY: a function of this type, says this function's contract.
    let ask = unsafe { std::mem::transmute::<*mut c_void, Ask>(ask) };
    // SAFETY: it takes any code, and what it returns is NULL or a constant text with a NUL (contract).
    let text = |code: u32| unsafe {
        let text = ask(code);
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    let unknown = text(most * 99);
    for code in 1..most {
        if let Some(text) = text(code).filter(|t| Some(*t) != unknown) {
            error_text(code.into(), text);
        }
    }
}
