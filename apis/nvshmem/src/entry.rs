//! The way in: how NVSHMEM's host library is recognised.
//!
//! Programs are linked to `libnvshmem_host.so.3`; a static library for device code beside it calls its functions, too.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits};

use crate::generated::tables::{CHANGED, NAMES};

library! {
    // NVSHMEMX_ERROR_NOT_SUPPORTED
    NAMES, changed: CHANGED, absent: 3, Traits {
        title: "NVSHMEM",
        signature: c"nvshmem_malloc",
        sonames: &["libnvshmem_host"],
        begins: |name| name.starts_with(b"nvshmem_") || name.starts_with(b"nvshmemx_"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: Some(FindVersion::Exports(&[
            (c"nvshmemx_team_init", (3, 3)),
            (c"nvshmemx_qp_create", (3, 5)),
            (c"nvshmemx_flush", (3, 7)),
            (c"nvshmemx_region_start", (3, 8)),
        ])),
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
