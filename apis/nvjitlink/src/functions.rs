//! What we ask of a link: by functions of the version that its program uses, as another one may not be there.

use std::ffi::c_void;

use crate::generated::prelude::P;

/// The real functions of one version.
pub struct Functions {
    pub create: unsafe fn(*mut P, u32, *const P) -> u32,
    pub destroy: unsafe fn(*mut P) -> u32,
    pub add: unsafe fn(P, u32, *const c_void, u64, *const i8) -> u32,
    pub complete: unsafe fn(P) -> u32,
    pub ptx_size: unsafe fn(P, *mut u64) -> u32,
    pub ptx: unsafe fn(P, *mut i8) -> u32,
    pub log_size: unsafe fn(P, *mut u64) -> u32,
    pub log: unsafe fn(P, *mut i8) -> u32,
}
