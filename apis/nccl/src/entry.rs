//! The way in: how NCCL's library is recognised.
//!
//! Some frameworks bring NCCL as a library, others have it inside; so there may
//! be several in a process. AMD's RCCL has NCCL's names, types and values, and numbers its versions by NCCL's: to us it is
//! another copy of NCCL.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits, Version};

use crate::generated::tables::{CHANGED, NAMES};

/// Its functions, and their second names for tools.
fn begins(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"p").unwrap_or(name);
    name.starts_with(b"nccl") || name.starts_with(b"msccl")
}

fn version(number: i32) -> Version {
    ((number / 10_000) as u32, (number / 100 % 100) as u32)
}

library! {
    NAMES, changed: CHANGED, absent: 5, Traits {
        title: "NCCL",
        signature: c"ncclGetVersion",
        sonames: &["libnccl", "librccl"],
        begins,
        beside: |_| None,
        versioned: false,
        several: true,
        version: Some(FindVersion::Call(c"ncclGetVersion", version)),
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
