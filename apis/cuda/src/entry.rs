//! The way in: how the driver's library is recognised, and who may ask it for
//! functions without being traced.
//!
//! There is one driver in a process: all its users need `libcuda.so.1`, and the
//! dynamic loader gives them the same. The runtime and most programs open it and
//! ask for `cuGetProcAddress` alone, which is why the hook on that exchanges what
//! it hands out (`hooks.rs`).

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

/// `cu` and a capital: the driver's functions, and not those of `cublas` and its like.
fn begins(name: &[u8]) -> bool {
    name.starts_with(b"cu") && name.get(2).is_some_and(u8::is_ascii_uppercase)
}

library! {
    NAMES, absent: 500, Traits {
        title: "CUDA driver",
        signature: c"cuInit",
        sonames: &["libcuda.so"],
        begins,
        beside: crate::beside,
        versioned: false,
        several: false,
        version: None,
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
