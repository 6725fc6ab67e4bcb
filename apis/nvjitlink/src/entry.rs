//! The way in: how the library is recognised. There may be several versions in a process: those of wheels, and the system's.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    NAMES, absent: 6, Traits {
        title: "nvJitLink",
        signature: c"nvJitLinkVersion",
        sonames: &["libnvJitLink.so"],
        begins: |name| name.starts_with(b"nvJitLink") || name.starts_with(b"__nvJitLink"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        // Its own parts.
        spared: &["libnvJitLink"],
        sparing: &[],
        loader: None,
    }
}
