//! What HIPRTC says of its error codes.

use crate::entry::LIBRARY;

/// Codes are below this.
const MOST: u32 = 128;

/// Records all texts that HIPRTC has.
pub fn report() {
    if let Some(ask) = LIBRARY.any_definition(c"hiprtcGetErrorString") {
        // SAFETY: the library's function of this name: a constant, or NULL.
        unsafe { hetrace_interpose::error_texts(ask, MOST) };
    }
}
