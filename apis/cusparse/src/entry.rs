//! The way in: how cuSPARSE's library is recognised. Programs call it, and so does cuSOLVER, which is linked to the one of
//! its version.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits};

use crate::generated::tables::{CHANGED, NAMES};

library! {
    // CUSPARSE_STATUS_NOT_SUPPORTED
    NAMES, changed: CHANGED, absent: 10, Traits {
        title: "cuSPARSE",
        signature: c"cusparseGetProperty",
        // And not `libcusparseLt`.
        sonames: &["libcusparse.so"],
        begins: |name| name.strip_prefix(b"cusparse").is_some_and(|rest| !rest.starts_with(b"Lt")),
        beside: |_| None,
        versioned: true,
        several: true,
        // `cusparseGetVersion` wants a handle.
        version: Some(FindVersion::Exports(&[(c"cusparseSpMVOp", (12, 7)), (c"cusparseSpGEAM", (12, 8))])),
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
