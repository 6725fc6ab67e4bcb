//! What Gizmo says of its results.

use crate::entry::LIBRARY;

/// Results are below this.
const MOST: u32 = 32;

/// Records all texts that Gizmo has.
pub fn report() {
    if let Some(ask) = LIBRARY.any_definition(c"gizmoResultText") {
        // SAFETY: the library's function of this name: a constant text for each number.
        unsafe { hetrace_interpose::error_texts(ask, MOST) };
    }
}
