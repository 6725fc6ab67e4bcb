//! Any bytes as a model, which lies in each trace: refused, or one whose events can be laid out.
#![no_main]

use hetrace_model::{Model, layout};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(model) = serde_json::from_slice::<Model>(data) else { return };
    let _ = layout::events(&model);
    let text = serde_json::to_string(&model).expect("a model can be written");
    let again: Model = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&again).expect("written"), text);
});
