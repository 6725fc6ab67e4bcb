//! The way in: how MIOpen's library is recognised.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    // miopenStatusNotImplemented
    NAMES, absent: 6, Traits {
        title: "MIOpen",
        signature: c"miopenGetVersion",
        sonames: &["libMIOpen"],
        begins: |name| name.starts_with(b"miopen"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        spared: &[],
        sparing: &[],
        loader: None,
    }
}
