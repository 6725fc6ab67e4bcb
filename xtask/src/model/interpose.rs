//! The functions by which an API is reached must be functions of it.

use std::collections::BTreeSet;

use hetrace_model::Model;

/// Names in `[interpose]` that are wrong or given twice.
pub fn problems(model: &Model) -> Vec<String> {
    let known: BTreeSet<&str> = model.functions.iter().map(|f| f.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for name in &model.interpose.dispatch {
        if !seen.insert(name) {
            out.push(format!("interpose.dispatch: {name} is there twice"));
        }
    }
    for name in model.interpose.dispatch.iter().chain(&model.interpose.signature) {
        if !known.contains(name.as_str()) {
            out.push(format!("interpose: {name} is no function of this API"));
        }
    }
    out
}
