//! What the generated files use. Written by hand.

pub use std::ffi::c_void;

pub use hetrace_interpose::put::{Caps, one, seq, text};
pub use hetrace_interpose::{entering, halves};

/// A pointer of any kind.
pub type P = *mut c_void;
