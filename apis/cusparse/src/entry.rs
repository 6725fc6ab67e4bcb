//! The way in: how cuSPARSE's library is recognised. Programs call it, and so does cuSOLVER, which is linked to the one of
//! its version.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::{LOADER, NAMES};

library! {
    // CUSPARSE_STATUS_NOT_SUPPORTED
    NAMES, LOADER, absent: 10, Traits {
        title: "cuSPARSE",
        signature: c"cusparseGetProperty",
        // And not `libcusparseLt`.
        sonames: &["libcusparse.so"],
        begins: |name| name.strip_prefix(b"cusparse").is_some_and(|rest| !rest.starts_with(b"Lt")),
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
