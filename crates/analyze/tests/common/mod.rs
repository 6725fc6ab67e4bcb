//! Traces from readable text, for tests. `golden/README.md` has the language.
#![allow(dead_code, unused_imports, reason = "each test uses a part of this")]

pub mod perfetto;
mod schema;
mod script;
mod value;

pub use script::{build, build_with, long};

use hetrace_model::Model;

/// The two APIs of the tests: `toy`, and `base`, which `toy` is made on.
pub fn models() -> Vec<Model> {
    let models = include_str!("models.json");
    serde_json::from_str(models).expect("models.json is a list of models")
}
