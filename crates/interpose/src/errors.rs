//! When the texts of an API's error codes are recorded: once by each process, with its
//! first ring, as after a crash the API can't be asked any more.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::own::pid;

/// The API's function that records them; NULL if it has none.
static REPORTER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
/// Process that has recorded them.
static REPORTED_BY: AtomicU32 = AtomicU32::new(0);

/// Sets the function that calls [`error_text`](crate::error_text) for each code. It runs inside the
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
