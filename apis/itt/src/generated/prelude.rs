//! What the generated files use. Written by hand.

pub use std::ffi::c_void;
pub use std::mem::transmute;
pub use std::ptr::{null, null_mut};

pub use hetrace_interpose::put::{Caps, bytes, text};
pub use hetrace_interpose::{Real, call};

pub use super::real;
use super::tables::NAMES;

/// A pointer of any kind.
pub type P = *mut c_void;

/// No function is handed out by address.
pub const INSTANCES: usize = 4;

/// The functions that answer in the place of real ones; see `local.rs`.
pub static REAL: [Real; NAMES.len()] = [const { Real::unknown() }; NAMES.len()];

/// An address in a table.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Address(pub *const c_void);

// SAFETY: the address of a function of this library.
unsafe impl Sync for Address {}

/// As [`hetrace_interpose::wrapper!`], but hidden: the functions have names of
/// ITT and other parameters, so nobody may be bound to them.
macro_rules! wrapper {
    (#[unsafe(no_mangle)] $($rest:tt)*) => {
        hetrace_interpose::wrapper! { $($rest)* }
    };
}
pub(super) use wrapper;

/// All functions are known before the first one is called.
pub fn look_up(_: &Real, _: usize) -> Option<P> {
    None
}

/// What a function answers that is not known, which never happens.
pub trait Missing {
    fn answer() -> Self;
}

macro_rules! missing {
    ($($ty:ty),*) => { $(
        impl Missing for $ty {
            fn answer() -> $ty {
                <$ty>::default()
            }
        }
    )* };
}

missing!((), i32, u64);

impl Missing for P {
    fn answer() -> P {
        null_mut()
    }
}

#[cold]
pub fn missing<R: Missing>() -> R {
    R::answer()
}
