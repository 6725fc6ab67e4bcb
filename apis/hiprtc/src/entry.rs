//! The way in: how the library is recognised. It is one of its own, and until version 6 a part of HIP's, too: whatever
//! exports these functions is a copy, and a process may well have both.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    NAMES, absent: 11, Traits {
        title: "HIPRTC",
        signature: c"hiprtcVersion",
        sonames: &["libhiprtc", "libamdhip64"],
        begins: |name| name.starts_with(b"hiprtc"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        // Its own parts, and HIP, which compiles by it.
        spared: &["libhiprtc", "libamdhip64", "libroctracer", "librocprofiler"],
        sparing: &[],
        loader: None,
    }
}
