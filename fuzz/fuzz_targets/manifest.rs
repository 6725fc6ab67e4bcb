//! Any bytes as a manifest: refused, or one that writing and reading again does not change.
#![no_main]

use hetrace_session::manifest::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(manifest) = serde_json::from_slice::<Manifest>(data) else { return };
    let text = serde_json::to_string(&manifest).expect("a manifest can be written");
    let again: Manifest = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&again).expect("written"), text);
});
