//! The texts of an API's error codes, recorded once by each process, with its
//! first ring: after a crash the API can't be asked any more.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hetrace_ring::abi::{ErrorTextRecord, special};

use crate::call::record_with_text;
use crate::own::pid;

/// The API's function that records them; NULL if it has none.
static REPORTER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
/// Process that has recorded them.
static REPORTED_BY: AtomicU32 = AtomicU32::new(0);

/// Sets the function that calls [`error_text`] for each code. It runs inside the
/// first recorded call of a process: it must call the real functions only, and
/// only those that need nothing to be initialized.
pub fn set_error_reporter(report: fn()) {
    REPORTER.store(report as *mut (), Ordering::Release);
}

pub(crate) fn report_once() {
    let report = REPORTER.load(Ordering::Acquire);
    let me = pid();
    if report.is_null() || REPORTED_BY.swap(me, Ordering::AcqRel) == me {
        return;
    }
    // SAFETY: what `set_error_reporter` was called with.
    let report = unsafe { std::mem::transmute::<*mut (), fn()>(report) };
    report();
}

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
