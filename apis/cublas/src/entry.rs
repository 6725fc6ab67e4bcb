//! The way in: how cuBLAS' library is recognised.
//!
//! Frameworks bring one of their own beside the toolkit's, and the symbols carry the major version: a process may have
//! several, each with callers of its own.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

/// Its functions. Those of cuBLASLt are in a library of their own, which it needs.
fn begins(name: &[u8]) -> bool {
    name.strip_prefix(b"cublas").is_some_and(|rest| !rest.starts_with(b"Lt"))
}

library! {
    // CUBLAS_STATUS_NOT_SUPPORTED
    NAMES, absent: 15, Traits {
        title: "cuBLAS",
        signature: c"cublasGetProperty",
        // And not `libcublasLt`.
        sonames: &["libcublas.so"],
        begins,
        beside: |_| None,
        versioned: true,
        several: true,
        version: None,
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
