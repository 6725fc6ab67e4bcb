//! Traces from readable text, for tests. `golden/README.md` has the language.
#![allow(dead_code, unused_imports, reason = "each test uses a part of this")]

pub mod cpus;
pub mod inside;
mod kernel;
pub mod perfetto;
mod schema;
mod script;
mod value;

pub use script::{Assembled, build, build_with, long, models_of, models_that_occur, parts};

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use hetrace_model::Model;

/// The APIs of the tests: `toy`, and `base`, which `toy` is made on; `zone`, of
/// ranges, and `mesh`, of collectives.
pub fn models() -> Vec<Model> {
    static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
        let models = include_str!("models.json");
        serde_json::from_str(models).expect("models.json is a list of models")
    });
    MODELS.clone()
}

/// The real model of an API, as its library carries it. It is read once: tests ask for it a hundred times.
pub fn real_model(api: &str) -> Model {
    static MODELS: Mutex<LazyLock<HashMap<String, Model>>> = Mutex::new(LazyLock::new(HashMap::new));
    // A test that failed meanwhile has left it whole.
    let mut models = MODELS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    models.entry(api.to_owned()).or_insert_with(|| read_model(api)).clone()
}

fn read_model(api: &str) -> Model {
    let apis = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apis");
    let path = apis.join(api).join("src/generated/model.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("a model")
}
