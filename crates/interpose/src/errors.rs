//! What an API says of its error codes, told once by each process, with its
//! first ring: whoever reads the trace of a crash can't ask any more.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hetrace_ring::abi::{ErrorTextRecord, special};

use crate::call::record_with_text;
use crate::own::pid;

/// The API's function that tells them; NULL if it has none.
static TELL: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
/// Process that has told them.
static TOLD: AtomicU32 = AtomicU32::new(0);

/// Sets the function that calls [`error_text`] for each code. It runs inside the
/// first recorded call of a process: it must call the real functions only, and
/// only those that need nothing to be initialized.
pub fn tells_errors(tell: fn()) {
    TELL.store(tell as *mut (), Ordering::Release);
}

pub(crate) fn report_once() {
    let tell = TELL.load(Ordering::Acquire);
    let me = pid();
    if tell.is_null() || TOLD.swap(me, Ordering::AcqRel) == me {
        return;
    }
    // SAFETY: what `tells_errors` was called with.
    let tell = unsafe { std::mem::transmute::<*mut (), fn()>(tell) };
    tell();
}

/// Records the text of an error code.
pub fn error_text(code: i64, text: &CStr) {
    record_with_text(special::ERROR_TEXT, &ErrorTextRecord { code }, text);
}

/// Records the texts of all codes below `most`, of an API whose function answers
/// a text for each code, and one and the same for those that are none.
///
/// # Safety
/// `ask` takes a code, and answers a constant or NULL.
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
