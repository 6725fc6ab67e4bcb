//! What the generated files use. Written by hand.

pub use hetrace_interpose::prelude::*;

pub use super::real;
pub use crate::entry::{REAL, look_up};

/// What a function answers that exists nowhere in the process.
#[cold]
pub fn missing<R: Missing>() -> R {
    R::answer(6) // SPARSE_STATUS_NOT_SUPPORTED
}
