//! What HIP says of its error codes.

use crate::entry::LIBRARY;

/// Codes are below this.
const MOST: u32 = 1100;

/// Records all texts that HIP has.
pub fn report() {
    if let Some(ask) = LIBRARY.any_definition(c"hipGetErrorString") {
        // SAFETY: the library's function of this name: a constant, or NULL. It starts nothing.
        unsafe { hetrace_interpose::error_texts(ask, MOST) };
    }
}
