//! The way in: how the runtime's library is recognised.
//!
//! Python packages bring a runtime each, and several versions may live in one
//! process; structs differ between them. Their symbols carry a version, so each
//! caller reaches the one that it was linked to, and must do so through us.
//!
//! A runtime that is linked statically has no symbols that anyone could stand
//! before. Its calls of the driver are traced.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits, Version};

use crate::generated::tables::{CHANGED, NAMES};

/// The runtime's functions, and those that the compiler calls.
fn begins(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"__").unwrap_or(name);
    name.starts_with(b"cuda") && name.get(4).is_some_and(u8::is_ascii_uppercase)
}

fn version(number: i32) -> Version {
    ((number / 1000) as u32, (number % 1000 / 10) as u32)
}

library! {
    NAMES, changed: CHANGED, absent: 500, Traits {
        title: "CUDA runtime",
        signature: c"cudaRuntimeGetVersion",
        sonames: &["libcudart"],
        begins,
        beside: |_| None,
        versioned: true,
        several: true,
        version: Some(FindVersion::Call(c"cudaRuntimeGetVersion", version)),
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
