//! The way in: how cuSOLVER's library is recognised.
//!
//! Frameworks bring one of their own beside the toolkit's, and the symbols carry the major version: a process may have
//! several, each with callers of its own.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    // CUSOLVER_STATUS_NOT_SUPPORTED
    NAMES, absent: 9, Traits {
        title: "cuSOLVER",
        signature: c"cusolverGetProperty",
        // And not `libcusolverMg`.
        sonames: &["libcusolver.so"],
        begins: |name| name.strip_prefix(b"cusolver").is_some_and(|rest| !rest.starts_with(b"Mg")),
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
