//! Atomics of what loom explores: `tests/loom.rs` compiles the same files with loom's in this place.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
