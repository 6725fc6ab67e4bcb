//! The way in: how the library is recognised. There may be several versions in a process: those of wheels, and the system's.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    NAMES, absent: 11, Traits {
        title: "NVRTC",
        signature: c"nvrtcVersion",
        sonames: &["libnvrtc.so"],
        begins: |name| name.starts_with(b"nvrtc"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        // Its own parts.
        spared: &["libnvrtc"],
        sparing: &[],
        loader: None,
    }
}
