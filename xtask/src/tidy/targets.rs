//! Whether each end-to-end test is one that Cargo knows: `tests/Cargo.toml` names them, and what it does not name never
//! runs, nor is it compiled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

/// Returns the sources of `folder` that are no target of a package, from what `cargo metadata` says.
pub fn faults(folder: &Path, metadata: &Value) -> Result<Vec<String>> {
    let each = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let packages = each(metadata, "packages").into_iter();
    let targets = packages.flat_map(|package| each(&package, "targets"));
    let known: BTreeSet<PathBuf> =
        targets.filter_map(|target| target["src_path"].as_str().map(PathBuf::from)).collect();
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rs") && !known.contains(&path) {
            faults.push(format!("{}: no [[test]] of a Cargo.toml, so it never runs", path.display()));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_that_no_target_names_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["named.rs", "forgotten.rs", "data.json"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let metadata =
            json!({ "packages": [{ "targets": [{ "src_path": folder.path().join("named.rs") }] }, {}] });
        let found = faults(folder.path(), &metadata).expect("a folder that can be read");
        assert!(found.len() == 1 && found[0].contains("forgotten.rs"), "{found:?}");
    }
}
