//! What an API says of its error codes, told once by each process, with its
//! first ring: whoever reads the trace of a crash can't ask any more.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hetrace_ring::abi::{ErrorTextRecord, special};

use crate::attach::pid;
use crate::call::record_extra;
use crate::put::Put;

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

pub(crate) fn tell_once() {
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
    // SAFETY: plain data, and a text that ends.
    unsafe { record_extra(special::ERROR_TEXT, Body(ErrorTextRecord { code }, text)) };
}

#[derive(Clone, Copy)]
struct Body<'t>(ErrorTextRecord, &'t CStr);

impl Put for Body<'_> {
    fn size(&self) -> usize {
        8 + self.1.to_bytes_with_nul().len()
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        let text = self.1.to_bytes_with_nul();
        // SAFETY: room for both.
        unsafe {
            let at = self.0.code.put(at);
            at.copy_from_nonoverlapping(text.as_ptr(), text.len());
            at.add(text.len())
        }
    }
}
