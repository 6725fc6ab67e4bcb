//! Any text as the index of a model, which an API's library has, and what is behind a NUL as that model.
#![no_main]

use hetrace_model::index::{self, Index};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let cut = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (text, json) = (&data[..cut], data.get(cut + 1..).unwrap_or_default());
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(index) = Index::parse(text.to_owned()) else { return };
    assert_eq!(index.text(), text);
    assert!(index.kinds().count() <= text.len());
    let _ = index.frame(json);
    for row in index.rows() {
        let _ = index::function(json, &row);
    }
});
