//! The way in: how cuBLASLt's library is recognised. Programs call it, and so does cuBLAS, which is linked to the one of
//! its version.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    // CUBLAS_STATUS_NOT_SUPPORTED
    NAMES, absent: 15, Traits {
        title: "cuBLASLt",
        signature: c"cublasLtGetProperty",
        sonames: &["libcublasLt.so"],
        begins: |name| name.starts_with(b"cublasLt"),
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
