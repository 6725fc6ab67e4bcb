//! The way in: how oneCCL's library is recognised.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    // onecclNotImplemented
    NAMES, absent: 12, Traits {
        title: "oneCCL",
        signature: c"onecclGetVersion",
        sonames: &["libccl.so.2"],
        begins: |name| name.starts_with(b"oneccl"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        spared: &[],
        sparing: &[],
        loader: None,
    }
}
