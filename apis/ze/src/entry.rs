//! The way in: how the loader is recognised, and what drivers are behind it.
//!
//! All programs need `libze_loader.so.1`; what has the loader inside opens it and fills in the loader's tables.
//! Drivers export the functions that fill in tables, too, and many of them all others: the loader alone may call
//! those, and a driver that calls itself means itself.

use hetrace_interpose::library;
use hetrace_interpose::library::{Loader, Traits};

use crate::generated::tables::{CHANGED, NAMES};

/// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`.
pub const UNSUPPORTED: i32 = 0x7800_0003;

/// `ze`, perhaps a letter for the part of the API, and a capital.
fn begins(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(b"ze") else { return false };
    let rest =
        rest.strip_prefix(b"t").or(rest.strip_prefix(b"s")).or(rest.strip_prefix(b"r")).unwrap_or(rest);
    rest.strip_prefix(b"l").unwrap_or(rest).first().is_some_and(u8::is_ascii_uppercase)
}

library! {
    NAMES, changed: CHANGED, absent: 0x7800_0003, Traits {
        title: "Level Zero",
        signature: c"zelLoaderGetVersions",
        sonames: &["libze_loader"],
        begins,
        beside: |_| None,
        versioned: false,
        several: true,
        version: None,
        spared: &[],
        sparing: &[],
        loader: Some(Loader {
            driver: c"zeGetGlobalProcAddrTable",
            lacks: Some(c"zelLoaderGetVersions"),
            // It finds its layers by names of its own, and we are none.
            below: |_, _| None,
            starting: |_| None,
        }),
    }
}
