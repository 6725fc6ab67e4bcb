//! C headers of many versions to one [`Extracted`].
//!
//! ```text
//! table.rs    ─► which headers of which packages, and what is special in them
//! fetch.rs    ─► the packages, from PyPI or a folder
//! clang.rs    ─► parses one version in one mode ─► ctype.rs, records.rs ─► Snapshot
//! snapshot.rs ─► all modes of one version together
//! layouts.rs  ─► types of all versions together
//! merge.rs    ─► functions, values and all else together
//! ```
//! libclang is loaded when an extraction runs, so nothing else needs it.

mod clang;
mod ctype;
mod fetch;
mod history;
mod layouts;
mod merge;
mod records;
mod snapshot;
mod table;
#[cfg(test)]
mod tests;
mod values;

use std::path::Path;

use anyhow::{Context, Result};
use hetrace_model::Registry;
use sha2::{Digest, Sha256};

pub use self::table::{ALL, HeaderApi};
use super::{Extraction, hex};

/// Reads all versions that the table lists, from `folder` or the package index.
pub fn extract(api: &HeaderApi, folder: Option<&Path>) -> Result<Extraction> {
    let roots = fetch::roots(api, folder)?;
    let own = fetch::own_headers(api)?;
    let libclang = clang::load()?;
    let mut versions = Vec::new();
    let mut sum = Sha256::new();
    for (label, root) in &roots {
        let mut read = || -> Result<_> {
            let root = &root.canonicalize()?;
            let snapshot = clang::read(&libclang, api, label, root, &own)?;
            for file in &snapshot.inputs {
                sum.update(std::fs::read(file).with_context(|| format!("reading {}", file.display()))?);
            }
            Ok(snapshot)
        };
        versions.push(read().with_context(|| root.display().to_string())?);
    }
    let mut done = merge::merge(api, versions);
    done.extracted.registry = Registry {
        file: api.headers.join(", "),
        sha256: hex(&sum.finalize()),
        versions: api.packages.iter().map(|p| p.label.to_owned()).collect(),
    };
    Ok(done)
}
