//! What the generated files use. Written by hand.

pub use hetrace_interpose::prelude::*;

pub use super::real;
use super::tables::NAMES;
pub use crate::device::{NO_GEOMETRY, geometry};
pub use crate::entry::{REAL, look_up};

const FUNCTIONS: usize = NAMES.len();

/// The real functions that platforms handed out.
pub static EXTENSIONS: [[Real; INSTANCES]; FUNCTIONS] =
    [const { [const { Real::unknown() }; INSTANCES] }; FUNCTIONS];

/// What a function answers that exists nowhere in the process.
#[cold]
pub fn missing<R: Missing>() -> R {
    R::answer(-59) // CL_INVALID_OPERATION
}
