//! Atomics of what loom explores: `tests/loom*.rs` compile the same files with loom's in this place.

#[cfg_attr(loom, allow(unused_imports, reason = "those who use it are left out"))]
pub(crate) use std::hint::spin_loop;
#[cfg_attr(loom, allow(unused_imports, reason = "those who use it are left out"))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
