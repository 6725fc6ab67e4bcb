//! The way in: how cuFFT's library is recognised.
//!
//! Frameworks bring one of their own beside the toolkit's, and the symbols carry the major version: a process may have
//! several, each with callers of its own.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits, Version};

use crate::generated::tables::{CHANGED, NAMES};

/// Its functions; the second are what a header of 11.3 and 11.4 calls.
fn begins(name: &[u8]) -> bool {
    name.strip_prefix(b"__").unwrap_or(name).starts_with(b"cufft")
}

/// 11303 is 11.3.3.
fn version(number: i32) -> Version {
    ((number / 1000) as u32, (number / 100 % 10) as u32)
}

library! {
    // CUFFT_NOT_IMPLEMENTED
    NAMES, changed: CHANGED, absent: 14, Traits {
        title: "cuFFT",
        signature: c"cufftGetProperty",
        // And not `libcufftw`.
        sonames: &["libcufft.so"],
        begins,
        beside: |_| None,
        versioned: true,
        several: true,
        version: Some(FindVersion::Call(c"cufftGetVersion", version)),
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
