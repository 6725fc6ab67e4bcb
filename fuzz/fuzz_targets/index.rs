//! Any bytes as the index of a model, which an API's library has, and what is behind a NUL as that model.
#![no_main]

use hetrace_model::index::{self, Index};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let cut = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (text, json) = (&data[..cut], data.get(cut + 1..).unwrap_or_default());
    let Ok(index) = Index::begin(text.to_vec()) else { return };
    assert!(index.kinds().count() <= text.len());
    assert!(index.functions().len() <= text.len());
    // As the launcher does, which reads the functions' lines later, or never.
    let _ = index.frame(json);
    let is_whole = index.check().is_ok();
    assert_eq!(is_whole, Index::parse(text.to_vec()).is_ok());
    let rows: Vec<_> = index.rows().collect();
    assert!(!is_whole || rows.len() == index.functions().len());
    assert!(rows.len() <= text.len() && index.before_rows().len() <= text.len());
    for row in rows {
        let _ = index::function(json, &row);
    }
});
