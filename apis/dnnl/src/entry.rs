//! The way in: how oneDNN's library is recognised.
//!
//! oneDNN 2 and 3 export the same names, of which some have other signatures: a caller reaches the copy that it is linked
//! to, and what 2 has in its own form is recorded by name. Many frameworks have oneDNN inside, with its names hidden: their
//! calls are not seen.

use hetrace_interpose::library;
use hetrace_interpose::library::{FindVersion, Traits};

use crate::generated::tables::{CHANGED, NAMES};

library! {
    // dnnl_unimplemented
    NAMES, changed: CHANGED, absent: 3, Traits {
        title: "oneDNN",
        signature: c"dnnl_version",
        sonames: &["libdnnl"],
        begins: |name| name.starts_with(b"dnnl_"),
        beside: |_| None,
        versioned: false,
        several: true,
        version: Some(FindVersion::Exports(&[
            (c"dnnl_memory_desc_create_with_tag", (3, 2)),
            (c"dnnl_primitive_attr_set_deterministic", (3, 5)),
            (c"dnnl_primitive_attr_set_rounding", (3, 13)),
        ])),
        spared: &[],
        sparing: &[],
        loader: None,
    }
}
