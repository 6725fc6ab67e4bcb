//! The way in: how HSA's runtime is recognised.
//!
//! Debian and ROCm's own packages have one, Python's wheels bring one each. Symbols of all of them have the version
//! `ROCR_1`, so it distinguishes no copies.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    NAMES, absent: 0x1000, Traits {
        title: "HSA",
        signature: c"hsa_init",
        sonames: &["libhsa-runtime64"],
        begins: |name| name.starts_with(b"hsa_"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        // AMD's tools, which look into it.
        spared: &["libroctracer", "librocprofiler", "librocprof-sys", "libomnitrace", "librocm-dbgapi"],
        sparing: &[],
        loader: None,
    }
}
