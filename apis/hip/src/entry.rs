//! The way in: how HIP's library is recognised.
//!
//! Debian and ROCm's own packages have one, Python's wheels bring one each, and several versions may live in one process.
//! chipStar's (`libCHIP`) is HIP above OpenCL or Level Zero. Their symbols say which version brought a function, not which library it is, so they distinguish no copies.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits};

use crate::generated::tables::{CHANGED, NAMES};

/// HIP's functions, those that the compiler calls, and those that C++ calls by its own names (`_Z24hipExt…`).
fn begins(name: &[u8]) -> bool {
    let plain = name.strip_prefix(b"__").unwrap_or(name);
    let plain = plain.strip_prefix(b"_Z").unwrap_or(plain);
    let length = plain.iter().take_while(|b| b.is_ascii_digit()).count();
    let plain = plain.get(length..).unwrap_or_default();
    plain.starts_with(b"hip") && plain.get(3).is_some_and(u8::is_ascii_uppercase)
}

library! {
    NAMES, changed: CHANGED, absent: 500, Traits {
        title: "HIP",
        signature: c"hipRuntimeGetVersion",
        sonames: &["libamdhip64", "libCHIP"],
        begins,
        beside: |_| None,
        versioned: false,
        several: true,
        // Its function for that would start the runtime, and its threads, in a program that has not.
        version: Some(FindVersion::Exports(&[
            (c"hipGraphDebugDotPrint", (5, 6)),
            (c"hipGetDevicePropertiesR0600", (6, 0)),
            (c"hipTexRefGetArray", (6, 1)),
            (c"hipGraphAddNode", (6, 2)),
            (c"hipGraphNodeSetParams", (6, 4)),
            (c"hipStreamGetId", (7, 1)),
        ])),
        // AMD's tools, which look into it.
        spared: &["libroctracer", "librocprofiler", "librocprof-sys", "libomnitrace", "librocm-dbgapi"],
        sparing: &[],
        loader: None,
    }
}
