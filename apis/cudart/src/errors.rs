//! What the runtime says of its error codes.

use crate::entry::LIBRARY;

/// Codes are below this.
const MOST: u32 = 1000;

/// Tells all that the runtime knows.
pub fn tell() {
    if let Some(ask) = LIBRARY.any_definition(c"cudaGetErrorString") {
        // SAFETY: the library's function of this name: a constant, or NULL.
        unsafe { hetrace_interpose::error_texts(ask, MOST) };
    }
}
