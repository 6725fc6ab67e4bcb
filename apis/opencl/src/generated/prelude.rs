//! What the generated files use. Written by hand.

pub use hetrace_interpose::prelude::*;

pub use super::real;
use super::tables::NAMES;
pub use crate::device::{NO_GEOMETRY, geometry};

const FUNCTIONS: usize = NAMES.len();

/// The real functions behind the loader.
pub static REAL: [Real; FUNCTIONS] = [const { Real::unknown() }; FUNCTIONS];
/// The real functions that platforms handed out.
pub static EXTENSIONS: [[Real; INSTANCES]; FUNCTIONS] =
    [const { [const { Real::unknown() }; INSTANCES] }; FUNCTIONS];

/// Looks a real function up that nobody told us.
#[cold]
#[inline(never)]
pub fn look_up(known: &Real, index: usize) -> Option<P> {
    let name: &std::ffi::CStr = NAMES.get(index)?;
    let address = crate::preload::find(name)?;
    known.set(address);
    Some(address)
}

/// What a function answers that exists nowhere in the process.
#[cold]
pub fn missing<R: Missing>() -> R {
    R::answer(-59) // CL_INVALID_OPERATION
}
