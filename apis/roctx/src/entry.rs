//! The way in: how ROCTX's library is recognised.
//!
//! There are two, roctracer's and that of rocprofiler-sdk. Debian, ROCm's own packages and Python's wheels bring one or
//! both, so a process may well have several.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    NAMES, absent: 0xffff_ffff, Traits {
        title: "ROCTX",
        signature: c"roctxRangePushA",
        sonames: &["libroctx64", "librocprofiler-sdk-roctx"],
        begins: |name| name.starts_with(b"roctx"),
        beside: |_| None,
        // All versions of roctracer's library have the same one in their symbols: it distinguishes no copies.
        versioned: false,
        several: true,
        version: None,
        // AMD's tools, which listen to the library itself.
        spared: &["libroctracer", "librocprofiler", "librocprof-sys", "libomnitrace"],
        sparing: &[],
        loader: None,
    }
}
