//! The way in: how NCCL's library is recognised.
//!
//! Some frameworks bring NCCL as a library, others have it inside; so there may
//! be several in a process.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits, Version};

use crate::generated::tables::{CHANGED, NAMES};

/// Its functions, and their second names for tools.
fn begins(name: &[u8]) -> bool {
    name.strip_prefix(b"p").unwrap_or(name).starts_with(b"nccl")
}

fn version(number: i32) -> Version {
    ((number / 10_000) as u32, (number / 100 % 100) as u32)
}

library! {
    NAMES, changed: CHANGED, absent: 5, Traits {
        title: "NCCL",
        signature: c"ncclGetVersion",
        sonames: &["libnccl"],
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
