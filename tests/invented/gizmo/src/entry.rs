//! The way in: how the library is recognised.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

/// Its functions; one has a name that does not say so.
fn begins(name: &[u8]) -> bool {
    name.starts_with(b"gizmo") || name == b"cuCtxSynchronize"
}

library! {
    NAMES, absent: 3, Traits {
        title: "Gizmo",
        signature: c"gizmoVersion",
        sonames: &["libgizmo.so"],
        begins,
        beside: |_| None,
        versioned: false,
        several: false,
        version: None,
        spared: &[],
        sparing: &[],
        loader: None,
    }
}
