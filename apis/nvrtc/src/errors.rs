//! What NVRTC says of its error codes.

use crate::entry::LIBRARY;

/// Codes are below this.
const MOST: u32 = 64;

/// Records all texts that NVRTC has.
pub fn report() {
    if let Some(ask) = LIBRARY.any_definition(c"nvrtcGetErrorString") {
        // SAFETY: the library's function of this name: a constant, or NULL.
        unsafe { hetrace_interpose::error_texts(ask, MOST) };
    }
}
